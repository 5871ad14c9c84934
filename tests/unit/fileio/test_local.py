"""LocalFileIO: the promises of the port, and what only a real disk can do wrong."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.fileio.base import NewFile
from tablestore_engine.fileio.local import LocalFileIO
from tests.unit.fileio.folder_promises import FolderPromises
from tests.unit.fileio.port_promises import PortPromises


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A folder of its own."""
    return str(tmp_path / "root")


@pytest.fixture
def fileio(root: str) -> LocalFileIO:
    """The port on it."""
    return LocalFileIO(root)


class TestLocalPromises(PortPromises, FolderPromises):
    """All promises on the local disk."""


def test_a_lost_answer_of_link_is_a_won_claim(
    fileio: LocalFileIO, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When link(2) works but its answer is an error, the inode shows that we won."""
    real = os.link

    def lossy(source: str, target: str, **folders: int) -> None:
        real(source, target, **folders)
        raise OSError(errno.EIO, "answer lost")

    monkeypatch.setattr(os, "link", lossy)
    assert fileio.create_exclusive(f"{root}/claim", b"mine")
    assert fileio.read(f"{root}/claim") == b"mine"
    assert os.listdir(root) == ["claim"]


def test_a_file_system_without_links_is_refused(
    fileio: LocalFileIO, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without hard links two commits could overwrite each other: TS1203, and no file appears."""

    def refuse(source: str, target: str, **folders: int) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(Unsupported, match="TS1203"):
        fileio.create_exclusive(f"{root}/claim", b"mine")
    assert os.listdir(root) == []


def test_delete_tree_does_not_follow_links(fileio: LocalFileIO, root: str, tmp_path: Path) -> None:
    """A symbolic link inside or instead of a folder is removed, what it points to stays."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("1")
    fileio.mkdirs(f"{root}/t")
    os.symlink(outside, f"{root}/t/link")
    os.symlink(outside, f"{root}/direct")
    fileio.delete_tree(f"{root}/t")
    fileio.delete_tree(f"{root}/direct")
    assert (outside / "precious").exists()
    assert os.listdir(root) == []


def test_the_root_itself_is_never_deleted(fileio: LocalFileIO, root: str) -> None:
    """delete_tree of the root is refused."""
    fileio.mkdirs(root)
    with pytest.raises(FixRequest, match="TS1202"):
        fileio.delete_tree(root)


def test_file_and_folder_are_synced_before_the_claim_returns(
    fileio: LocalFileIO, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """write and create_exclusive call fsync on the file first, then on its folder (P1)."""
    fileio.mkdirs(root)
    synced: list[bool] = []
    real = os.fsync

    def spy(fd: int) -> None:
        synced.append(os.path.isdir(f"/proc/self/fd/{fd}"))
        real(fd)

    monkeypatch.setattr(os, "fsync", spy)
    fileio.write(f"{root}/w", b"1")
    assert synced == [False, True]
    synced.clear()
    fileio.create_exclusive(f"{root}/c", b"1")
    assert synced == [False, True]
    synced.clear()
    with fileio.open_output(f"{root}/o") as sink:
        sink.write(b"1")
    assert synced == [False, True]


def test_many_files_are_synced_before_their_folders(
    fileio: LocalFileIO, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """write_many syncs every file, then each folder with a new name once: those of new folders too (promise 14)."""
    fileio.mkdirs(root)
    synced: list[str] = []
    real = os.fsync

    def spy(fd: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), root))
        real(fd)

    monkeypatch.setattr(os, "fsync", spy)
    fileio.write_many([NewFile(f"{root}/{n % 2}/{n}", b"1", f"{root}/{n % 2}/also-{n}") for n in range(8)])
    assert sorted(synced[:8]) == [f"{n % 2}/{n}" for n in (0, 2, 4, 6, 1, 3, 5, 7)]
    assert sorted(synced[8:]) == [".", "0", "1"]


def test_none_of_many_files_stays_when_one_is_refused(fileio: LocalFileIO, root: str) -> None:
    """A name that is taken: the error comes out, the others and their second names are gone, that file stays (14)."""
    fileio.write(f"{root}/a/6", b"old")
    with pytest.raises(FileExistsError):
        fileio.write_many([NewFile(f"{root}/a/{n}", b"new", f"{root}/a/also-{n}") for n in range(8)])
    assert os.listdir(f"{root}/a") == ["6"]
    assert fileio.read(f"{root}/a/6") == b"old"


def test_it_travels_to_spark_workers(fileio: LocalFileIO) -> None:
    """A pickled copy has the same root."""
    assert pickle.loads(pickle.dumps(fileio)).root == fileio.root
