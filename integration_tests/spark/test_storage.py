"""Disks that are full or closed, seen through Spark and through dbt: an own error with path and next step."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec

_SPILL = """
import sys
from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.errors import StorageError
engine = Engine(sys.argv[1], spark=SparkSettings("local[2]", {"spark.local.dir": sys.argv[2]}))
query = "select r, count(*) as n from (select concat(cast(rand(1) as string), repeat(cast(rand(2) as string), 9)) as r"
try:
    engine.sql(query + " from range(200000)) group by r having n > 1")
except StorageError as error:
    print(error)
print(engine.sql("select count(*) from demo.t where true").rows)
"""
_DBT = """
import sys
from dbt.cli.main import dbtRunner
done = dbtRunner().invoke(["run", "--project-dir", sys.argv[1], "--profiles-dir", sys.argv[1], "--no-use-colors"])
assert not done.success
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _make_table(warehouse: Path) -> None:
    with Engine(str(warehouse)) as engine:
        engine.write("demo.t", pa.table({"id": [1, 2]}), WriteSpec(table=TableSpec(primary_key=("id",))))


def _run(program: str, *arguments: Path) -> str:
    words = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout


@pytest.mark.nightly  # by day tests/unit/spark/test_spark_causes.py
def test_a_shuffle_that_finds_no_room(tmp_path: Path, disk: Path) -> None:
    """Spark's local folder is full: TS1561 names the setting, and the session goes on with what fits."""
    _make_table(tmp_path / "wh")
    said = _run(_SPILL, tmp_path / "wh", disk)
    assert "TS1561" in said
    assert "spark.local.dir" in said
    assert "((2,),)" in said


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("state", "code"),
    [("closed", "TS1263"), ("full", "TS1261")],
)
def test_dbt_on_a_disk_that_takes_nothing(tmp_path: Path, disk: Path, state: str, code: str) -> None:
    """A model's message has the code and the path, and no stack; the table is as it was."""
    _make_table(disk)
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "dbt_project.yml").write_text("{name: p, version: '1.0', profile: p}")
    (project / "profiles.yml").write_text(
        f"p: {{target: t, outputs: {{t: {{type: tablestore, warehouse: '{disk}', schema: demo}}}}}}"
    )
    (project / "models" / "m.sql").write_text("{{ config(materialized='table') }} select 1 as id")
    if state == "closed":
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    else:
        facts = os.statvfs(disk)
        (disk / ".filler").write_bytes(bytes(facts.f_bavail * facts.f_frsize))
    said = _run(_DBT, project)
    assert code in said
    assert str(disk) in said
    with Engine(str(disk)) as engine:
        assert engine.table("demo.t").scan().to_arrow().num_rows == 2
        # scratch lies elsewhere: Spark reads a warehouse that takes no byte
        assert engine.sql("select count(*) from demo.t where true").rows == ((2,),)
