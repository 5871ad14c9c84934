"""The stored state of a source, in the folder of Connect's offsets.

CHANGE     the stored state of a source database
INVARIANT  `reached` only grows: what a sync has promised is in the tables, and the database cannot be before it.
CRASH      a record without `reached` promised nothing to anybody: the next start may begin anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.stores import open_root
from tablestore_engine.postgres.catalog_tables import CatalogTable, key_of
from tablestore_engine.postgres.database_source import DatabaseSource
from tablestore_engine.postgres.postgres_session import Identity, place_number
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.runtime.server_process import locked

_FILE = "source.json"


@dataclass(frozen=True)
class FollowedTable:
    """`columns`: name → number, as pg_attribute has it, 0 for one that was dropped; `leaves`: of a partitioned table,
    oid → relfilenode; `kinds`: name → type; `made`: name → the transaction that altered the column last; `meanings`: as
    CatalogColumn.meaning; `file`, `published`: as CatalogTable.

    `snapshot`: id of its last re-snapshot, which the warehouse's table must have; '' where its topic has all rows.
    `doubt`: fingerprint of a later state of the catalog in which rows may have values that replication did not send;
    `doubt_since`: rows of this transaction and later ones were written in that state.
    """

    oid: int
    key: tuple[str, ...]
    columns: Mapping[str, int]
    leaves: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, str] = field(default_factory=dict)
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    file: str = ""
    published: str = ""
    snapshot: str = ""
    doubt: str = ""
    doubt_since: int = 0


@dataclass(frozen=True)
class SourceRecord:
    """`tables`: patterns; `cluster`: id of the brokers; `reached`: the last place that a sync has promised."""

    database: str
    tables: tuple[str, ...]
    system: str
    timeline: int
    cluster: str
    reached: str | None
    followed: Mapping[str, FollowedTable]

    def with_followed(self, found: Mapping[str, FollowedTable]) -> SourceRecord:
        """These too, or as they are now; another process may have taken a snapshot of them meanwhile."""
        known = {name: one.snapshot for name, one in self.followed.items()}
        kept = {name: replace(one, snapshot=known.get(name, one.snapshot)) for name, one in found.items()}
        return replace(self, followed={**self.followed, **kept})

    def with_snapshot(self, name: str, found: FollowedTable, snapshot: str) -> SourceRecord:
        """One table that was read again."""
        return replace(self, followed={**self.followed, name: replace(found, snapshot=snapshot)})

    def without(self, name: str) -> SourceRecord:
        """One that is given up."""
        return replace(self, followed={one: it for one, it in self.followed.items() if one != name})

    def with_place(self, place: str) -> SourceRecord:
        """Never back."""
        known = self.reached
        return self if known and place_number(known) >= place_number(place) else replace(self, reached=place)


def follow_as_is(table: CatalogTable, before: FollowedTable | None = None) -> FollowedTable:
    """As the catalog has it now. Columns of `before` that were dropped keep their names: the warehouse has them."""
    columns = {one.name: one.number for one in table.columns}
    dropped = {} if before is None else dict.fromkeys(before.columns.keys() - columns.keys(), 0)
    return FollowedTable(
        table.oid,
        key_of(table),
        {**dropped, **columns},
        {oid: facts[0] for oid, facts in table.leaves.items()},
        {one.name: one.kind for one in table.columns},
        {one.name: one.made for one in table.columns},
        {one.name: one.meaning for one in table.columns if one.meaning},
        table.file,
        table.published,
    )


def topic_of(source: str, table: str) -> str:
    """Debezium writes _ for what a topic's name cannot have."""
    return re.sub(r"[^a-zA-Z0-9._-]", "_", f"{source}.{table}")


def read_record(folder: Path) -> SourceRecord | None:
    """None where there is none, or no whole one."""
    try:
        said = json.loads((folder / _FILE).read_text("utf-8"))
        followed = {
            name: FollowedTable(**{**one, "key": tuple(one["key"])})
            for name, one in said.pop("followed").items()
        }
        return SourceRecord(**{**said, "tables": tuple(said["tables"])}, followed=followed)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def write_record(folder: Path, record: SourceRecord) -> None:
    """On the disk when it returns. Raises StorageError."""
    root, fileio = open_root(str(folder), SYSTEM.users)
    fileio.replace(f"{root}/{_FILE}", json.dumps(asdict(record)).encode())


def change_record(folder: Path, change: Callable[[SourceRecord], SourceRecord]) -> SourceRecord | None:
    """The new one; None where there is none."""
    with locked(folder, ".source-lock"):
        known = read_record(folder)
        if known is None:
            return None
        new = change(known)
        if new != known:
            write_record(folder, new)
        return new


def check_record(record: SourceRecord, source: DatabaseSource, here: Identity, cluster: str) -> None:
    """Raises FixRequest TS1492."""
    differences = [
        (record.database, source.database, "it followed database {}, not {}"),
        (record.tables, source.tables, "it followed the tables {}, not {}"),
        (record.system, here.system, "it followed the server with system identifier {}, not {}"),
        (record.timeline, here.timeline, "that server was recovered since: its timeline was {} and is {}"),
        (record.cluster, cluster, "its topics are in the Kafka cluster {}, not {}"),
    ]
    for known, now, sentence in differences:
        if known != now:
            raise _changed(source, sentence.format(_as_text(known), _as_text(now)))
    if record.reached and place_number(here.place) < place_number(record.reached):
        raise _changed(
            source,
            f"its log ends at {here.place}, and {record.reached} was read: it was restored from a backup",
        )


def _as_text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "of all patterns"
    return str(value)


def _changed(source: DatabaseSource, why: str) -> FixRequest:
    return FixRequest(
        "TS1492",
        f"source {source.name} is not the one that was followed before",
        why=why,
        fix="start it as it was, or give this one another name; to load all rows again: "
        f"{anew_command(source)}, and drop the tables that it filled",
    )


def resnapshot_command(source: DatabaseSource, table: str) -> str:
    """What a user types to read one table again."""
    return f"tablestore sync {source.name} --into … --resnapshot '{table}'"


def anew_command(source: DatabaseSource) -> str:
    """What a user types to begin anew."""
    tables = "".join(f" --table '{one}'" for one in source.tables)
    return f"tablestore connect start {source.name} --database {source.url}{tables} --anew"
