"""What a caller asks for: what a table should be, and what one write should do.

Names      TableSpec        keys, partitions, options and comments of a table that may have to be created
           WriteSpec        one write: mode, deletes, checks, schema changes, staging, identity
           OnSchemaChange   what a write does when the query's columns differ from the table's
INVARIANT  a spec is checked completely before anything is written (P7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from tablestore_engine.errors import FixRequest
from tablestore_engine.store.metadata.source_positions import Steps
from tablestore_engine.store.rows.row_filter import RowFilter
from tablestore_engine.store.write.write_request import WriteMode

DUPLICATES = ("refuse", "last")
MISSING_COLUMNS = ("refuse", "null")
_Word = TypeVar("_Word", bound=StrEnum)


class OnSchemaChange(StrEnum):
    """What a write does when the query's columns differ from the table's."""

    SAME_COLUMNS = "same_columns"  # unknown ones are refused, missing ones as `missing_columns` says
    IGNORE = "ignore"  # new columns are dropped, missing ones are NULL
    FAIL = "fail"
    APPEND_NEW_COLUMNS = "append_new_columns"
    SYNC_ALL_COLUMNS = "sync_all_columns"
    REPLACE = "replace"  # full refresh: the table gets the query's columns, ids are kept where names match


@dataclass(frozen=True)
class TableSpec:
    """What a table should be. `options` are Paimon options; comments go into the schema."""

    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)
    not_null: tuple[str, ...] = ()


@dataclass(frozen=True)
class WriteSpec:
    """One write of a query's rows into a table. Words may be texts. Raises FixRequest TS1025 for unknown ones.

    table             used when the table does not exist; for an existing one, keys and partitions must agree
    mode              WriteMode.UPSERT, APPEND, OVERWRITE_TABLE, OVERWRITE_PARTITIONS, REPLACE
    replaces          REPLACE: the stored rows that give way, an Interval or SameKeys (of the rows written)
    delete_when       SQL condition over the query's columns: rows that mean delete (keyed tables)
    checks            name -> SQL condition that no row may violate (TS1605)
    on_schema_change  see OnSchemaChange; SAME_COLUMNS by default
    missing_columns   with SAME_COLUMNS, upserts by key: 'refuse' rows that lack a column of the table, or 'null'
    duplicates        None = the table's option; 'refuse' or 'last'
    stage             name of a staged snapshot to write instead of main (test-gated publishing)
    beside            a new table, which takes the place of what has the name: with `stage` when it is published, else
                      behind its last row
    always            commit even when there is no row
    builds_on_stage   build on the staged snapshot of that name when there is one, instead of replacing it
    publish           send the changelog to the log when the table has one and the write is not staged
    commit_user, commit_identifier   identity: the same pair never writes twice
    properties        kept in the snapshot (invocation id, model …); never secrets
    positions         source -> how far the table gets in it with these rows (PositionStep); committed with them
    """

    table: TableSpec = field(default_factory=TableSpec)
    mode: WriteMode = WriteMode.UPSERT
    delete_when: str | None = None
    checks: Mapping[str, str] = field(default_factory=dict)
    on_schema_change: OnSchemaChange = OnSchemaChange.SAME_COLUMNS
    missing_columns: str = "refuse"
    duplicates: str | None = None
    stage: str | None = None
    beside: bool = False
    always: bool = False
    publish: bool = True
    commit_user: str | None = None
    commit_identifier: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    replaces: RowFilter | None = None
    builds_on_stage: bool = False
    positions: Steps = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", _word(WriteMode, "mode", self.mode))
        object.__setattr__(
            self, "on_schema_change", _word(OnSchemaChange, "on_schema_change", self.on_schema_change)
        )
        if self.duplicates not in (None, *DUPLICATES):
            raise _unknown("duplicates", self.duplicates, DUPLICATES)
        if self.missing_columns not in MISSING_COLUMNS:
            raise _unknown("missing_columns", self.missing_columns, MISSING_COLUMNS)
        if (self.mode is WriteMode.REPLACE) != (self.replaces is not None):
            raise _unknown(
                "replaces", self.replaces, ("an Interval or SameKeys with mode replace, None with others",)
            )
        if self.builds_on_stage and self.stage is None:
            raise _unknown("builds_on_stage", True, ("a write with stage",))
        if self.stage is not None and not self.stage.strip():
            raise _unknown("stage", self.stage, ("a name", "None"))


def _word(words: type[_Word], name: str, value: str) -> _Word:
    try:
        return words(value)
    except ValueError:
        raise _unknown(name, value, [word.value for word in words]) from None


def _unknown(name: str, value: object, expected: Sequence[str]) -> FixRequest:
    return FixRequest(
        "TS1025",
        f"a write cannot have {name} {value!r}",
        why=f"expected one of {', '.join(expected)}",
        fix=f"set {name} to one of these",
    )
