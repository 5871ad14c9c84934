"""Sizes of files as the store says them, for checks against what metadata records."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from tablestore_engine.errors import NotFound
from tablestore_engine.fileio.base import FileIO


@dataclass(frozen=True)
class FileSizes:
    """A listing of a folder at its first file, then one request for each file that is written later."""

    fileio: FileIO
    _listed: dict[str, dict[str, int]] = field(default_factory=dict)

    def find(self, path: str, fileio: FileIO | None = None) -> int | None:
        """Bytes; None for a missing file. `fileio`: of a file outside of the warehouse."""
        size = self._of_folder(path.rpartition("/")[0], fileio).get(path)
        if size is None:
            with suppress(NotFound):  # written since, or a link, or missing
                size = (fileio or self.fileio).size(path)
        return size

    def get(self, path: str) -> int:
        """Raises NotFound TS1201."""
        size = self.find(path)
        return self.fileio.size(path) if size is None else size

    def list_together(self, paths: Iterable[str]) -> None:
        """List the folders of these files, on object stores several at once."""
        folders = dict.fromkeys(path.rpartition("/")[0] for path in paths)
        self.fileio.run_together([partial(self._of_folder, folder) for folder in folders])

    def _of_folder(self, folder: str, fileio: FileIO | None = None) -> dict[str, int]:
        found = self._listed.get(folder)
        if found is None:
            listed = (fileio or self.fileio).list(folder)
            found = {one.path: one.size_bytes for one in listed if not one.is_dir and one.is_plain}
            self._listed[folder] = found
        return found
