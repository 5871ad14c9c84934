"""What a caller asks for: what a table should be, and what one write should do.

INVARIANT  a spec is checked completely before anything is written (P7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from tablestore_engine.errors import FixRequest
from tablestore_engine.store.metadata.source_positions import Steps
from tablestore_engine.store.write.write_request import CommitOptions, WriteMode

DUPLICATES = ("refuse", "last")
MISSING_COLUMNS = ("refuse", "null")
_Word = TypeVar("_Word", bound=StrEnum)


class OnSchemaChange(StrEnum):
    """What a write does when the query's columns differ from the table's.

    >>> rows = [{"id": 4, "region": "us", "amount": 1.0, "note": "new"}]
    >>> report = orders.write(rows, WriteSpec(on_schema_change=OnSchemaChange.APPEND_NEW_COLUMNS))
    >>> orders.schema.field_names
    ('id', 'region', 'amount', 'note')
    """

    SAME_COLUMNS = "same_columns"  # unknown ones are refused, missing ones as `missing_columns` says
    IGNORE = "ignore"  # new columns and fields are dropped, missing columns are NULL, missing fields of structs refused
    FAIL = "fail"
    APPEND_NEW_COLUMNS = "append_new_columns"
    SYNC_ALL_COLUMNS = "sync_all_columns"
    REPLACE = "replace"  # full refresh: the table gets the query's columns, ids are kept where names match


@dataclass(frozen=True)
class TableSpec:
    """What a table should be. `options` are Paimon options; comments go into the schema.

    >>> spec = WriteSpec(table=TableSpec(primary_key=("id",), comment="customers"))
    >>> engine.write("demo.customers", [{"id": 1, "name": "ann"}], spec).inserted
    1
    """

    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)
    not_null: tuple[str, ...] = ()


@dataclass(frozen=True)
class WriteSpec(CommitOptions):
    """One write of a query's rows into a table, with the fields of CommitOptions and these.

    Enum values may be given as strings. Raises FixRequest TS1025 for unknown ones.

    table             used when the table does not exist; for an existing one, keys and partitions must agree
    delete_when       SQL condition over the query's columns: rows that mean delete (keyed tables)
    checks            name -> SQL condition that no row may violate (TS1605)
    on_schema_change  see OnSchemaChange; SAME_COLUMNS by default
    missing_columns   'refuse' or 'null': rows that lack a column or a field of a struct. It counts for upserts by key
                      with SAME_COLUMNS, and for fields with IGNORE
    beside            a new table, which takes the place of what has the name: with `stage` when it is published, else
                      after its last row
    publish           send the changelog to the log when the table has one and the write is not staged
    positions         source -> how far the table gets in it with these rows (PositionStep); committed with them

    >>> rows = [{"id": 4, "region": "us", "amount": 1.0}]
    >>> orders.write(rows, WriteSpec(commit_user="loader", commit_identifier=7)).inserted
    1
    >>> orders.write(rows, WriteSpec(commit_user="loader", commit_identifier=7)).snapshot_id  # the same commit again
    2
    """

    table: TableSpec = field(default_factory=TableSpec)
    delete_when: str | None = None
    checks: Mapping[str, str] = field(default_factory=dict)
    on_schema_change: OnSchemaChange = OnSchemaChange.SAME_COLUMNS
    missing_columns: str = "refuse"
    beside: bool = False
    publish: bool = True
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
