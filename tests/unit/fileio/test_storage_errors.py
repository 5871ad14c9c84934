"""What the disk refuses for a known reason: own errors with path and next step, which are OSErrors still."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.errors import StorageError
from tablestore_engine.fileio.local import LocalFileIO


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    """More than 255 bytes, in a folder or in a file."""
    files = LocalFileIO(str(tmp_path))
    for act in (
        lambda: files.mkdirs(f"{tmp_path}/{'x' * 300}"),
        lambda: files.write(f"{tmp_path}/{'x' * 300}", b""),
        lambda: files.create_exclusive(f"{tmp_path}/{'x' * 300}/snapshot-1", b""),
    ):
        with pytest.raises(StorageError, match="255 bytes") as refused:
            act()
        assert refused.value.code == "TS1262"
        assert isinstance(refused.value, OSError)


def test_a_warehouse_that_is_a_file(tmp_path: Path) -> None:
    """A file where a folder should be is named."""
    (tmp_path / "wh").write_text("not a folder")
    files = LocalFileIO(f"{tmp_path}/wh")
    with pytest.raises(StorageError, match="is a folder") as refused:
        files.write(f"{tmp_path}/wh/demo.db/t", b"")
    assert refused.value.code == "TS1263"
    assert str(tmp_path / "wh") in refused.value.what
