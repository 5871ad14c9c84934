"""What the Spark layer needs to know about tables and views; `api` answers it, tests answer it with stubs.

Names      Selector        which state of a table: snapshot id, tag, timestamp in epoch ms, staged branch
           ResolvedTable   one pinned state: a cheap `version`, and its files on demand
           ResolvedView    stored SQL text
           TableSource     the port: database and name -> one of these, or None
           Overrides       states that plain names mean in one statement (staged snapshots, as-of)
INVARIANT  two ResolvedTables with equal `version` have equal rows: the version names location, branch, snapshot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyroaring import BitMap

from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.format.schema import TableSchema

SNAPSHOT, TAG, TIMESTAMP, BRANCH = "snapshot", "tag", "timestamp", "branch"


@dataclass(frozen=True)
class Selector:
    """`kind` snapshot | tag | timestamp | branch; `value` an id, a name, epoch milliseconds, a branch name."""

    kind: str
    value: int | str

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


class ScannedFile(Protocol):
    """One data file of a plan: where it is, its metadata, the schema it was written with, its dead positions."""

    @property
    def path(self) -> str: ...  # noqa: D102 - described above
    @property
    def meta(self) -> DataFileMeta: ...  # noqa: D102
    @property
    def schema(self) -> TableSchema: ...  # noqa: D102
    @property
    def deleted(self) -> BitMap | None: ...  # noqa: D102


class PlannedScan(Protocol):
    """The part of store's ScanPlan that reading with Spark needs."""

    @property
    def schema(self) -> TableSchema: ...  # noqa: D102
    @property
    def files(self) -> Sequence[ScannedFile]: ...  # noqa: D102


@dataclass(frozen=True)
class ResolvedTable:
    """One state of a table. `label` is short and readable (`s7`); `load_plan` reads manifests, once needed.

    `commit` is `user:identifier` of the commit that made the rows, which folding and publishing keep.
    """

    version: str
    label: str
    schema: TableSchema
    load_plan: Callable[[], PlannedScan] = field(compare=False, repr=False)
    commit: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """Version and columns: a table that was dropped and made anew, still empty, has an old version again."""
        shape = repr((self.schema.fields, self.schema.comment))
        return f"{self.version}#{hashlib.sha256(shape.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class ResolvedView:
    """A stored view; `column_comments` in column order, empty texts for none. `is_own`: this process wrote the text."""

    sql: str
    comment: str | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)
    is_own: bool = False


class TableSource(Protocol):
    """Names -> states. A selector that does not exist raises; an unknown name is None."""

    def lookup(
        self, database: str, name: str, selector: Selector | None
    ) -> ResolvedTable | ResolvedView | None:
        """The current state, or the selected one."""


@dataclass(frozen=True)
class Overrides:
    """(database, table) -> the state that its plain name means, in this statement.

    `watch` is told every table that the statement reads, in which state, and whether the text names that state.
    """

    states: Mapping[tuple[str, str], Selector] = field(default_factory=dict)
    watch: Callable[[str, str, ResolvedTable, bool], None] | None = None

    def selector(self, database: str, name: str) -> Selector | None:
        """The override of a name, if there is one."""
        return self.states.get((database, name))

    def note(
        self, database: str, name: str, found: ResolvedTable | ResolvedView, *, is_constant: bool = False
    ) -> None:
        """A name was found; `is_constant`: at a version that stands in the text (VERSION AS OF)."""
        if self.watch is not None and isinstance(found, ResolvedTable):
            self.watch(database, name, found, is_constant)


NO_OVERRIDES = Overrides()
