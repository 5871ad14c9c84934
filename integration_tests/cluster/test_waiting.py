"""An application that gets no executor."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tablestore_engine.api import SparkSettings

pytestmark = pytest.mark.nightly
_PROGRAM = """
import sys
from tablestore_engine.api import Engine, SparkSettings
master, warehouse, *conf = sys.argv[1:]
settings = SparkSettings(master, dict(one.split("=", 1) for one in conf))
with Engine(warehouse, spark=settings, environ={}) as engine:
    print(engine.sql("select count(*) from range(10)").rows, flush=True)
"""


def test_application_without_executors_says_what_it_waits_for(
    settings: SparkSettings, tmp_path: Path
) -> None:
    """No worker has the memory that it asks for: the wait is spoken of, with the settings to change."""
    conf = [f"{key}={value}" for key, value in settings.conf.items()]
    command = [sys.executable, "-c", _PROGRAM, settings.master, str(tmp_path / "w"), *conf]
    process = subprocess.Popen(
        [*command, "spark.executor.memory=900g"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    given_up = threading.Timer(600, process.kill)  # no result depends on it: without a word the test fails
    given_up.start()
    try:
        assert process.stderr is not None
        said = next((line for line in process.stderr if "waits for executors" in line), "")
    finally:
        given_up.cancel()
        process.kill()
        process.communicate()
    assert settings.master in said
    assert "spark.cores.max" in said
    assert "900g" in said
