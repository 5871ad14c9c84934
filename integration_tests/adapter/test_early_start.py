"""The second `dbt build` of a folder begins its JVM before its imports, and its session is the one of the profile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest
import yaml

from tablestore_engine.api import Engine
from tablestore_engine.runtime.server_process import start_time
from tablestore_engine.runtime.session_place import JVM_START

HANG_SECONDS = 120

# Each start is a line with its process id and arguments; then it is the real one.
_WRAPPER = """#!/bin/sh
echo "$$ $*" >> "$STARTS"
exec '{real}' "$@"
"""
MODEL = """
{{ config(materialized='table') }}
select current_timezone() as zone, count(*) as n, max(id) as largest from range(1000)
"""


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """The installed Spark, whose spark-submit writes down how it is called."""
    real, home = Path(pyspark.__file__).parent, tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    for entry in real.iterdir():
        if entry.name != "bin":
            (home / entry.name).symlink_to(entry)
    for entry in (real / "bin").iterdir():
        if entry.name != "spark-submit":
            (home / "bin" / entry.name).symlink_to(entry)
    wrapper = home / "bin" / "spark-submit"
    wrapper.write_text(_WRAPPER.format(real=real / "bin" / "spark-submit"))
    wrapper.chmod(0o755)
    return home


class Project:
    """One model; `memory` and `zone` are settings of its profile."""

    def __init__(self, folder: Path, spark_home: Path) -> None:
        self.folder, self.starts = folder / "project", folder / "starts"
        self.cache = folder / "cache"
        (self.folder / "models").mkdir(parents=True)
        (self.folder / "models" / "m.sql").write_text(MODEL)
        (self.folder / "dbt_project.yml").write_text("{name: p, version: '1.0.0', profile: p}")
        self.environment = {
            **{key: value for key, value in os.environ.items() if key != "PYSPARK_SUBMIT_ARGS"},
            "SPARK_HOME": str(spark_home),
            "STARTS": str(self.starts),
            "TABLESTORE_FAST_START": "0",
            "TABLESTORE_CACHE": str(self.cache),
        }

    def build(self, conf: dict[str, str], command: str = "build") -> list[str]:
        """How Spark was started by `dbt build`: one line each."""
        target = {
            "type": "tablestore",
            "warehouse": "warehouse",
            "schema": "demo",
            "spark": {"master": "local[1]", "conf": conf},
        }
        profile = {"p": {"target": "t", "outputs": {"t": target}}}
        (self.folder / "profiles.yml").write_text(yaml.safe_dump(profile))
        process = self.start(command)
        said = process.communicate()[0]
        assert process.returncode == 0, said
        return self.starts.read_text().splitlines()

    def start(self, command: str = "build") -> subprocess.Popen[str]:
        """`dbt build` with the profile as it is."""
        self.starts.write_text("")
        arguments = [sys.executable, "-m", "dbt.cli.main", command, "--profiles-dir", "."]
        return subprocess.Popen(
            arguments,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def row(self) -> tuple[object, ...]:
        """What the model has."""
        with Engine(str(self.folder / "warehouse")) as engine:
            [row] = engine.table("demo.m").scan().to_arrow().to_pylist()
            return tuple(row.values())

    def kept(self) -> list[Path]:
        """Files that say how a JVM begins."""
        return list(self.cache.glob(f"sessions/*/{JVM_START}"))


def test_a_jvm_begins_as_the_last_one_was_started(tmp_path: Path, spark_home: Path) -> None:
    """One start each. The second has no properties file, yet its session has the settings of the profile; settings that
    are more than SQL begin nothing, and are not written down.
    """
    project = Project(tmp_path, spark_home)
    [first] = project.build({"spark.sql.session.timeZone": "Asia/Tokyo"})
    assert "--properties-file" in first
    [second] = project.build({"spark.sql.session.timeZone": "Europe/Berlin"})
    assert "--properties-file" not in second
    assert project.row() == ("Europe/Berlin", 1000, 999)
    begun, own = project.build({"spark.hadoop.planted": "secret"})
    assert ("--properties-file" in begun, "--properties-file" in own) == (False, True)
    assert project.kept() == []


@pytest.mark.nightly
def test_another_memory_ends_the_jvm_that_was_begun(tmp_path: Path, spark_home: Path) -> None:
    """The next JVM begins with it; a command that needs none starts none; after a secret setting none begins."""
    project = Project(tmp_path, spark_home)
    project.build({})
    begun, own = project.build({"spark.driver.memory": "1g"})
    assert ("--properties-file" in begun, "--properties-file" in own) == (False, True)
    assert project.row() == ("UTC", 1000, 999)
    [kept] = project.kept()
    assert "spark.driver.memory=1g" in json.loads(kept.read_text())["arguments"]
    assert project.build({"spark.driver.memory": "1g"}, "parse") == []
    begun, own = project.build({"spark.hadoop.planted": "secret"})
    assert "--properties-file" in own
    assert project.kept() == []
    [alone] = project.build({"spark.hadoop.planted": "secret"})
    assert "--properties-file" in alone


def test_a_command_that_ends_early_leaves_no_jvm(tmp_path: Path, spark_home: Path) -> None:
    """Killed, or ended by a project that does not parse, while its JVM starts; by the next command too."""
    project = Project(tmp_path, spark_home)
    project.build({})
    started: list[int] = []
    for _ in range(2):
        process = project.start()
        wait_until(lambda: bool(project.starts.read_text()))
        process.kill()
        process.communicate()
        started.append(int(project.starts.read_text().split()[0]))
    (project.folder / "models" / "m.sql").write_text("{{ nothing")
    assert project.start().wait() != 0
    started.append(int(project.starts.read_text().split()[0]))
    wait_until(lambda: all(start_time(pid) is None for pid in started))


def wait_until(is_so: Callable[[], bool]) -> None:
    """Fails only when it would hang."""
    pause = threading.Event()
    for _ in range(HANG_SECONDS * 10):
        if is_so():
            return
        pause.wait(0.1)
    raise AssertionError("a process runs on")
