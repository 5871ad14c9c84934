"""What a hidden table reads where no links are possible: the files of a group, behind a stand-in.

Stand-in   the hidden table lies over a folder with one file that is no Parquet file. Views and analysed plans are made
           over it as over links; before a plan runs, relations over the real files take its place (remote_relations)
CHANGE     how Spark reads files of an object store
INVARIANT  a plan that nobody prepared fails to read the stand-in. It never answers without rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from tablestore_engine.errors import Unsupported
from tablestore_engine.spark.read_way import ChosenReads
from tablestore_engine.spark.view_sql import FileGroup, first_words
from tablestore_engine.store.files.stored_file import StoredFile

STAND_IN = "no-rows-before-the-plan-is-prepared.parquet"
_TEXT = (
    b"A stand-in for data files of an object store: the engine puts these in its place before a plan runs.\n"
)
_NO_CONSTANTS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class RemoteFiles:
    """`constants`: file name → the value of `constant_column` in all of its rows. `shows_kinds`: the rows say their
    kind, as those of changelog files do.
    """

    group: FileGroup
    reads: ChosenReads
    constant_column: str | None = None
    constants: Mapping[str, int] = field(default_factory=lambda: _NO_CONSTANTS)
    shows_kinds: bool = False

    @classmethod
    def of(cls, group: FileGroup, reads: ChosenReads) -> RemoteFiles:
        """All files of the group; where Spark looks for dead rows, each knows its first word."""
        _check_parquet(group.files)
        if not group.has_deletions:
            return cls(group, reads)
        return cls(group, reads, group.word_column, first_words(group.files))

    @classmethod
    def of_changes(
        cls,
        group: FileGroup,
        reads: ChosenReads,
        column: str,
        snapshots: Mapping[str, int],
        *,
        shows_kinds: bool,
    ) -> RemoteFiles:
        """Changelog files, each of one snapshot."""
        _check_parquet(group.files)
        return cls(group, reads, column, snapshots, shows_kinds)

    def only(self, files: Sequence[StoredFile], *, own_words: bool) -> RemoteFiles:
        """Some of the files. `own_words`: numbered by themselves."""
        constants = first_words(files) if own_words else self.constants
        return replace(self, group=replace(self.group, files=tuple(files)), constants=constants)

    def make_stand_in(self, folder: Path) -> None:
        """The folder that the hidden table lies over."""
        place = folder if self.constant_column is None else folder / f"{self.constant_column}=0"
        place.mkdir(parents=True, exist_ok=True)
        (place / STAND_IN).write_bytes(_TEXT)


def _check_parquet(files: Sequence[StoredFile]) -> None:
    """Raises Unsupported TS1510."""
    for file in files:
        if not file.path.endswith(".parquet"):
            raise not_parquet(file.path)


def not_parquet(path: str) -> Unsupported:
    """TS1510."""
    return Unsupported(
        "TS1510",
        f"data file {path} cannot be read in Spark",
        why="only Parquet files are read natively; this one has another format",
        fix="rewrite the table with file.format=parquet, for example by a compaction in the engine that wrote it",
    )
