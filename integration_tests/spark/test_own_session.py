"""An engine in a program that has a Spark session of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import util
from pyspark.sql import SparkSession

_PROGRAM = """
import sys
import pyarrow as pa
from pyspark.sql import SparkSession
from tablestore_engine.api import Engine, WriteSpec
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
engine = Engine(sys.argv[1])
engine.write("demo.a", pa.table({"id": [1, 2]}), WriteSpec(mode="append"))
assert engine.spark is session or engine.spark.sparkContext is session.sparkContext
assert engine.sql("select count(*) from demo.a where true").rows == ((2,),)
"""


@pytest.mark.nightly  # by day docs/test_docs.py: nothing of Spark stays
def test_our_names_make_no_folders_where_the_program_runs(tmp_path: Path) -> None:
    """The session makes its own `spark-warehouse` there; the databases of our names lie in scratch."""
    home = tmp_path / "home"
    home.mkdir()
    subprocess.run([sys.executable, "-c", _PROGRAM, str(tmp_path / "warehouse")], cwd=home, check=True)
    assert list(home.rglob("*.db")) == []


def test_rows_come_through_a_socket_of_the_scratch_folder(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not through a port, which another program may take for its own; `toArrow` and `collect`."""
    asked: list[object] = []
    connect = util.local_connect_and_auth

    def noted(place: object, secret: object) -> object:
        asked.append(place)
        return connect(place, secret)  # type: ignore[arg-type]

    monkeypatch.setattr(util, "local_connect_and_auth", noted)
    assert spark.range(3).toArrow().num_rows == 3
    assert len(spark.range(3).collect()) == 3
    folder = spark.conf.get("spark.python.unix.domain.socket.dir")
    assert len(asked) == 2
    assert all(str(one).startswith(f"{folder}/") for one in asked)


_SECRET_PROGRAM = """
import sys
from pathlib import Path
from tablestore_engine.api import Engine, SparkSettings
mark = "-".join(("planted", "secret"))
secret = mark + sys.argv[2]
key = "spark.hadoop.fs.s3a.secret.key"
engine = Engine(sys.argv[1], spark=SparkSettings(master="local[1]", conf={key: secret, "spark.driver.memory": "1g"}))
assert secret not in repr(SparkSettings(conf={key: secret}))
context = engine.spark.sparkContext
assert context._jsc.hadoopConfiguration().get("fs.s3a.secret.key") == secret
lines = {}
for process in Path("/proc").glob("[0-9]*"):
    try:
        lines[process.name] = (process / "cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:  # it ended meanwhile
        continue
print("told:", [line for line in lines.values() if mark in line])
print("memory:", any("-Xmx1g" in line for pid, line in lines.items() if pid == str(context._gateway.proc.pid)))
print("defaults:", context.getConf().get("spark.planted.default", "none"))
kept = [path for path in Path(sys.argv[1]).rglob("*") if path.is_file() and mark.encode() in path.read_bytes()]
print("kept:", kept)
"""


@pytest.mark.nightly  # by day cluster: no command line has the secret; tests/unit/spark
def test_what_spark_is_told_stands_in_no_command_line(tmp_path: Path) -> None:
    """Every user of the machine reads command lines: the conf reaches Spark and its JVM by a file that goes again."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "spark.planted.default kept\nspark.driver.memory 3g\n"
    )
    odd = " =:#!\\u é\u20ac\U0001f600\t\"'$HOME`x`\\"
    told = subprocess.run(
        [sys.executable, "-c", _SECRET_PROGRAM, str(tmp_path / "warehouse"), odd],
        env={
            **os.environ,
            "SPARK_CONF_DIR": str(tmp_path / "conf"),
            "TABLESTORE_FAST_START": "0",
            "TABLESTORE_SCRATCH": str(tmp_path / "warehouse"),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    said = dict(line.split(": ", 1) for line in told.stdout.splitlines() if ": " in line)
    assert said == {"told": "[]", "memory": "True", "defaults": "kept", "kept": "[]"}
