"""What a name means in a statement: a table at one state, or the text of a view or function.

INVARIANT  two ResolvedTables with equal `version` have equal rows: the version names location, branch, snapshot.
INVARIANT  nobody parses a version: what it was made from is in the fields beside it.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.sql.table_version import TableVersion, split_database
from tablestore_engine.store.read.scan import ScanPlan

if TYPE_CHECKING:
    from tablestore_engine.catalog.read_log import ReadLog
    from tablestore_engine.store.merge.lookup import KeyCache
    from tablestore_engine.stream.changes_plan import ChangesPlan


@dataclass(frozen=True)
class SnapshotRef:
    """A snapshot by its id and its `Snapshot.unique`: the same id may come again after a rollback."""

    id: int
    unique: str


NO_SNAPSHOT = SnapshotRef(0, "empty")


class LoadPlan(Protocol):
    """Reads manifests. Of changes between two states it gives a ChangesPlan."""

    def __call__(self, *, is_native: bool = False, rows_max: int | None = None) -> ScanPlan | ChangesPlan:
        """`is_native`: the reader opens files itself, and the footer of each is checked before (plan_native_scan).
        `rows_max`: the first files that have so many rows.
        """


@dataclass(frozen=True)
class ResolvedTable:
    """One state of a table. `label` is short and readable (`s7`); `load_plan` is called once files are needed.

    `stage` is the name of a staged snapshot, None for the table's own. `commit` is `user:identifier` of the commit
    that made the rows, which folding and publishing keep. `is_clause`: VERSION or TIMESTAMP AS OF names the state.
    `cache`: what this process remembers of the table's data files.
    """

    version: str
    label: str
    schema: TableSchema
    load_plan: LoadPlan = field(compare=False, repr=False)
    snapshot: SnapshotRef = NO_SNAPSHOT
    stage: str | None = None
    commit: str = field(default="", compare=False)
    is_clause: bool = field(default=False, compare=False)
    cache: KeyCache | None = field(default=None, compare=False, repr=False)

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


# (database, view) → (column, Spark type, nullable) of a stored view, as the statement sees it; none where it has errors
ViewColumns = Callable[[str, str], Sequence[tuple[str, str, bool]]]


@dataclass(frozen=True)
class ResolvedSystemView:
    """A view of the warehouse itself; `columns`: (name, Spark type); `rows` as it is now."""

    columns: tuple[tuple[str, str], ...]
    rows: Callable[[ViewColumns], Sequence[tuple[object, ...]]] = field(compare=False, repr=False)


@dataclass(frozen=True)
class ResolvedFunction:
    """A stored SQL function; `sql` is all that follows its name, `is_volatile`: declared NOT DETERMINISTIC."""

    sql: str
    is_volatile: bool = False
    is_own: bool = False


ResolvedName = ResolvedTable | ResolvedView
Meaning = ResolvedName | ResolvedFunction


def stored_texts(meanings: Mapping[tuple[str, str], Meaning | None]) -> tuple[str, ...]:
    """Of the views and functions that a statement uses."""
    return tuple(one.sql for one in meanings.values() if isinstance(one, ResolvedView | ResolvedFunction))


@dataclass(frozen=True)
class Overrides:
    """(database, table) -> the state that its plain name means, in this statement.

    `reads` is told every table that the statement reads, in which state, and whether the text names that state.
    `moment_ms`: what current_timestamp() and its like give, in epoch milliseconds; None: the time when it runs.
    `seen`: of the work that the statement belongs to; None: of its own.
    """

    states: Mapping[tuple[str, str], TableVersion] = field(default_factory=dict)
    reads: ReadLog | None = None
    moment_ms: int | None = None
    seen: SeenStates | None = None

    def version(self, database: str, name: str) -> TableVersion | None:
        return self.states.get((database, name))

    def note(self, database: str, name: str, found: ResolvedName, *, is_constant: bool = False) -> None:
        """A name was found; `is_constant`: at a version in the text (VERSION AS OF, `demo__at_snapshot_5`.orders)."""
        from tablestore_engine.catalog.read_log import TableRead

        if self.reads is None or not isinstance(found, ResolvedTable):
            return
        base, version = split_database(database)
        read = TableRead(f"{base}.{name}", found.commit, found.snapshot.id, found.stage)
        is_fixed = is_constant or version is not None
        if version is not None and version.changes is not None:
            is_fixed = False  # the end of the range is what the text was compiled for
        self.reads.note(read, is_constant=is_fixed)


NO_OVERRIDES = Overrides()
