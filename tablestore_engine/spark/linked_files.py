"""Folders of links that Spark reads as tables: the files of a group, each where its words of dead rows are found.

CHANGE     the folders of links that Spark reads
INVARIANT  a folder never changes once a table or a plan reads it.
WHY        Spark takes `n` from the folder's name as a column, the same for all rows of a file: the filter adds it to
           the row's number and is at its word, where a map by file name would be searched for every row.
           A folder of links is listed at once; a glob of 1,000 file names took 5-12 s (one look-up per name).
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tablestore_engine.errors import EngineBug
from tablestore_engine.spark.remote_files import not_parquet
from tablestore_engine.spark.view_sql import FileGroup, first_words
from tablestore_engine.store.files.stored_file import StoredFile


@dataclass(frozen=True)
class LinkedFiles:
    """What a hidden table reads. `starts`: file name → its first word; empty without dead rows."""

    group: FileGroup
    folder: Path
    starts: Mapping[str, int]

    @classmethod
    def of(cls, group: FileGroup, folder: Path) -> LinkedFiles:
        """All files of the group, their words in the group's order."""
        return cls(group, folder, first_words(group.files) if group.has_deletions else {})

    def only(self, files: Sequence[StoredFile], *, own_words: bool) -> LinkedFiles:
        """Some of the files in a folder of their own, named by what lies in it. `own_words`: numbered by themselves."""
        names = "\0".join([str(own_words), *(file.meta.file_name for file in files)])
        digest = hashlib.sha256(names.encode()).hexdigest()[:20]
        starts = first_words(files) if own_words else self.starts
        fewer = replace(self.group, files=tuple(files))
        return replace(
            self, group=fewer, folder=self.folder.with_name(f"{self.folder.name}_{digest}"), starts=starts
        )

    def path_of(self, file: StoredFile) -> Path:
        """Where its link lies."""
        start = self.starts.get(file.meta.file_name)
        inside = self.folder if start is None else self.folder / f"{self.group.word_column}={start}"
        return inside / file.meta.file_name

    def make(self) -> None:
        """All links; those that are there stay. Raises Unsupported TS1510, EngineBug TS1511, TS1530."""
        self.folder.mkdir(exist_ok=True)
        for file in self.group.files:
            link = self.path_of(file)
            link.parent.mkdir(exist_ok=True)
            if file.fileio is None or file.is_external:
                link_stored(file, link)
            else:
                _keep_copy(file.path, link)


def _keep_copy(path: str, link: Path) -> None:
    """A copy of merged rows goes when its plan does; here it stays as long as the folder, which all workers see."""
    if link.exists():
        return
    try:
        link.hardlink_to(path)
    except OSError:  # another file system
        shutil.copyfile(path, link)


def link_stored(file: StoredFile, link: Path) -> None:
    """Spark follows every link: that an external file is a plain one is looked at here. Raises FixData TS1290, NotFound
    TS1201, and what link_file raises.
    """
    if file.is_external and file.fileio is not None:
        file.fileio.size(file.path)
    link_file(file.path, link)


def link_file(path: str, link: Path) -> None:
    """A link that is there stays. Raises Unsupported TS1510, EngineBug TS1511, TS1530."""
    if not path.startswith("/"):  # Spark lists a link to nothing, and reads no rows from it without an error
        raise EngineBug(
            "TS1530",
            f"a link to data file {path} was asked for",
            why="it is on an object store, which has no links; such files are read without links",
            fix="report this with the statement",
        )
    if not path.endswith(".parquet"):
        raise not_parquet(path)
    try:
        link.symlink_to(path)
    except FileExistsError:
        if link.readlink() != Path(path):
            raise EngineBug(
                "TS1511",
                f"two data files have the name {link.name}",
                why=f"{path} and {link.readlink()}; names carry a uuid and must be unique",
                fix="report this with both paths",
            ) from None
