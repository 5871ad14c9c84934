"""The promises of fileio/base.py's FolderStore as tests, for stores that have folders."""

from __future__ import annotations

import contextlib

import pytest

from tablestore_engine.errors import NotFound
from tablestore_engine.fileio.base import FileIO, FolderStore


class FolderPromises:
    """Needs fixtures `fileio: FileIO` and `root: str`, a folder of its own."""

    @pytest.fixture
    def folders(self, fileio: FileIO) -> FolderStore:
        """What the store can do with folders."""
        assert fileio.folders is not None
        return fileio.folders

    def test_temporary_files_are_listed_for_who_cleans_up(
        self, fileio: FileIO, folders: FolderStore, root: str
    ) -> None:
        """Promise 11: they are in list_hidden and nowhere else; a missing folder has none."""
        fileio.write(f"{root}/d/plain", b"1")
        with fileio.open_output(f"{root}/d/slow") as sink:
            sink.write(b"half")
            (one,) = folders.list_hidden(f"{root}/d")
            assert one.name.startswith(".slow.")
            assert (one.is_dir, one.is_plain) == (False, True)
        assert [one.name for one in fileio.list(f"{root}/d")] == ["plain", "slow"]
        assert folders.list_hidden(f"{root}/d") == folders.list_hidden(f"{root}/none") == []

    def test_a_checked_create_makes_no_folder(self, fileio: FileIO, root: str) -> None:
        """Promise 10: a claim in a table that is gone does not bring its folder back."""
        with pytest.raises(NotFound, match="TS1201"):
            fileio.create_exclusive(f"{root}/gone/claim", b"late", check=lambda: None)
        assert not fileio.exists(f"{root}/gone")

    def test_a_checked_create_never_lands_in_another_folder(
        self, fileio: FileIO, folders: FolderStore, root: str
    ) -> None:
        """Promise 10: the folder is replaced after the check looked; the new folder stays without the file."""
        fileio.mkdirs(f"{root}/table/claims")

        def replaced() -> None:
            folders.rename(f"{root}/table", f"{root}/aside")
            fileio.mkdirs(f"{root}/table/claims")

        with contextlib.suppress(NotFound, OSError):
            fileio.create_exclusive(f"{root}/table/claims/claim", b"late", check=replaced)
        assert fileio.list(f"{root}/table/claims") == []

    def test_rename_moves_files_and_folders_but_never_onto_something(
        self, fileio: FileIO, folders: FolderStore, root: str
    ) -> None:
        """Rename is False when the target exists, and both stay as they were."""
        fileio.write(f"{root}/m/a", b"a")
        fileio.write(f"{root}/n/b", b"b")
        assert not folders.rename(f"{root}/m", f"{root}/n")
        assert not folders.rename(f"{root}/m/a", f"{root}/n/b")
        assert fileio.read(f"{root}/n/b") == b"b"
        assert folders.rename(f"{root}/m/a", f"{root}/p/q/a")
        assert folders.rename(f"{root}/n", f"{root}/o")
        assert (fileio.read(f"{root}/p/q/a"), fileio.read(f"{root}/o/b")) == (b"a", b"b")
        with pytest.raises(NotFound, match="TS1201"):
            folders.rename(f"{root}/none", f"{root}/other")

    def test_delete_takes_files_and_empty_folders_only(self, fileio: FileIO, root: str) -> None:
        """Promise 9: missing is fine, a folder with content stays."""
        fileio.write(f"{root}/d/f", b"1")
        fileio.delete(f"{root}/none")
        with pytest.raises(OSError):
            fileio.delete(f"{root}/d")
        fileio.delete(f"{root}/d/f")
        fileio.delete(f"{root}/d")
        assert not fileio.exists(f"{root}/d")
