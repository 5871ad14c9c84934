"""Work folders of the cache: what killed processes left is removed after a day, a lost race changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tablestore_engine.devservers.program_cache import put_in_place, work_folder
from tablestore_engine.runtime.outside_world import Runtime

_DAY_SECONDS = 86_400


def test_work_folders_of_killed_processes_go_after_a_day(tmp_path: Path) -> None:
    """An older one of any version of the program is removed; a younger one and other programs stay."""
    for name, age in ((".kafka-4.2-a", 2), (".kafka-4.3-b", 0), (".versitygw-1-c", 2), ("kafka-4.2", 2)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 1_000_000_000 - age * _DAY_SECONDS))
    runtime = Runtime(now_ms=lambda: 1_000_000_000_000, new_uuid=lambda: "id")
    with work_folder(tmp_path / "kafka-4.3", runtime=runtime) as work:
        assert work == tmp_path / ".kafka-4.3-id"
        (work / "jar").write_text("")
    assert {path.name for path in tmp_path.iterdir()} == {".kafka-4.3-b", ".versitygw-1-c", "kafka-4.2"}


def test_first_copy_stays(tmp_path: Path) -> None:
    """Of two processes that made a program, the second one drops its copy."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "made-by").write_text(name)
    put_in_place(tmp_path / "a", tmp_path / "program")
    put_in_place(tmp_path / "b", tmp_path / "program")
    assert (tmp_path / "program" / "made-by").read_text() == "a"


def test_refused_rename_is_an_error(tmp_path: Path) -> None:
    """A rename that fails for another reason than a lost race is raised."""
    with pytest.raises(OSError, match="No such file"):
        put_in_place(tmp_path / "missing", tmp_path / "program")
