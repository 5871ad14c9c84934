"""An engine in a program that has a Spark session of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import sys
import pyarrow as pa
from pyspark.sql import SparkSession
from tablestore_engine.api import Engine, WriteSpec
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
engine = Engine(sys.argv[1])
engine.write("demo.a", pa.table({"id": [1, 2]}), WriteSpec(mode="append"))
assert engine.spark is session or engine.spark.sparkContext is session.sparkContext
assert engine.sql("select count(*) from demo.a").rows == ((2,),)
"""


def test_our_names_make_no_folders_where_the_program_runs(tmp_path: Path) -> None:
    """The session makes its own `spark-warehouse` there; the databases of our names lie in the warehouse's scratch."""
    home = tmp_path / "home"
    home.mkdir()
    subprocess.run([sys.executable, "-c", _PROGRAM, str(tmp_path / "warehouse")], cwd=home, check=True)
    assert list(home.rglob("*.db")) == []
