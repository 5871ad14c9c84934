"""Scratch folders of dead processes go at the next start, those of living ones never."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tablestore_engine.runtime.scratch import (
    open_process_folder,
    remove_dead_folders,
    remove_own_folder,
)

_HOLDS = """
import sys
from pathlib import Path
from tablestore_engine.runtime.scratch import open_process_folder
print(open_process_folder(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def _other_process(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDS, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_only_folders_of_dead_processes_are_removed(tmp_path: Path) -> None:
    """A killed process's folder is removed by the next start; a living one's stays, and so does our own."""
    living, kept = _other_process(tmp_path)
    killed, left = _other_process(tmp_path)
    killed.kill()
    killed.wait()
    (left / "files").mkdir()
    mine = open_process_folder(tmp_path)
    assert kept.is_dir()
    assert not left.exists()
    assert remove_dead_folders(tmp_path) == ()
    assert mine.is_dir()
    living.communicate("")
    assert not kept.exists()  # it ended by itself: its own exit removed it


def test_a_reused_process_id_is_told_by_its_start_time(tmp_path: Path) -> None:
    """A folder that names this very pid with another start time is of a dead process; other machines' are kept."""
    mine = open_process_folder(tmp_path)
    told = json.loads((mine / "owner").read_text())
    assert told["pid"] == os.getpid()
    cases = {
        "spark-1-old": {**told, "started": "another boot:17"},
        "spark-1-same": told,  # a lock that was lost, on a network folder: the process lives
        "spark-1-away": {**told, "host": "another machine", "started": "x"},
    }
    for name, owner in cases.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "owner").write_text(json.dumps(owner))
    (tmp_path / "spark-1-none").mkdir()
    (tmp_path / "spark-1-link").symlink_to(mine, target_is_directory=True)
    assert remove_dead_folders(tmp_path) == (tmp_path / "spark-1-old",)
    assert (tmp_path / "spark-1-none").is_dir()
    assert mine.is_dir()


def test_the_folder_is_private(tmp_path: Path) -> None:
    """Logs and settings of a session are nobody else's business."""
    assert stat.S_IMODE(open_process_folder(tmp_path).stat().st_mode) == 0o700


def test_a_file_made_during_the_removal_at_exit_is_removed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that a signal interrupted still makes links: the folder is removed again until it is gone."""
    mine = open_process_folder(tmp_path)
    late = [mine / "late", mine / "later"]
    remove = shutil.rmtree

    def remove_while_links_are_made(folder: Path, *, ignore_errors: bool) -> None:
        remove(folder, ignore_errors=ignore_errors)
        if late:
            late.pop().mkdir(parents=True)

    monkeypatch.setattr(shutil, "rmtree", remove_while_links_are_made)
    pauses: list[float] = []
    remove_own_folder(mine, os.getpid(), pauses.append)
    assert not mine.exists()
    assert len(pauses) == 2


def test_a_forked_child_leaves_the_folder_of_its_parent(tmp_path: Path) -> None:
    """The exit handler is inherited by a fork; only the process that made the folder removes it."""
    mine = open_process_folder(tmp_path)
    remove_own_folder(mine, os.getpid() + 1)
    assert mine.is_dir()
