"""A write as the store gets it, and the part of the table that it reads and may change.

INVARIANT  a request is checked completely before a file is written (P7).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.error_values import count_of, sql_literal
from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.rows.row_filter import EVERY_ROW, RowFilter, RowPositions, check_filter
from tablestore_engine.store.tasks.prepublish_rows import ReceiveRows


class WriteMode(StrEnum):
    """What happens to the rows that are there. UPSERT and APPEND are one: a key decides.

    >>> orders.write(orders.scan(filter="id = 1"), WriteSpec(mode=WriteMode.OVERWRITE_TABLE)).deleted
    2
    """

    UPSERT = "upsert"
    APPEND = "append"
    OVERWRITE_TABLE = "overwrite_table"
    OVERWRITE_PARTITIONS = "overwrite_partitions"  # those that occur in the rows
    OVERWRITE_STATIC = "overwrite_static"  # those that the request names
    REPLACE = "replace"  # the stored rows that the request's filter picks

    @property
    def is_overwrite(self) -> bool:
        """Whether stored rows may go that no row names."""
        return self not in (WriteMode.UPSERT, WriteMode.APPEND)


@dataclass(frozen=True, kw_only=True)
class CommitOptions:
    """What a caller says of a commit, whatever its rows are: WriteSpec and WriteRequest have these fields.

    mode             what happens to the rows that are there
    replaces         REPLACE: the stored rows that the new ones replace, an Interval or SameKeys (of the rows written);
                     what equals a new row stays
    duplicates       'refuse' or 'last': replaces the table's option for this write; None: the table's option
    skip_unchanged   an upserted row that equals the stored one is no change, whatever the table's option says
    stage            name of a staged snapshot to write instead of the next one of main (test-gated publishing)
    builds_on_stage  build on the staged snapshot of that name when there is one, instead of replacing it
    always           commit even when no row changes
    commit_user, commit_identifier   both: the same pair never writes twice. A user alone is a prefix
    properties       kept in the snapshot, if there is anything to commit (invocation id, model …); never secrets
    """

    mode: WriteMode = WriteMode.UPSERT
    replaces: RowFilter | None = None
    duplicates: str | None = None
    skip_unchanged: bool = False
    stage: str | None = None
    builds_on_stage: bool = False
    always: bool = False
    commit_user: str | None = None
    commit_identifier: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def options_of_write(self) -> dict[str, str]:
        """Options of the table that have another value for this write."""
        chosen = {} if self.duplicates is None else {"tablestore.duplicates": self.duplicates}
        return {**chosen, "changelog-producer.row-deduplicate": "true"} if self.skip_unchanged else chosen

    def commit_options(self) -> dict[str, Any]:
        """These fields alone, by name: arguments for another object that has them."""
        return {one.name: getattr(self, one.name) for one in fields(CommitOptions)}


@dataclass(frozen=True)
class WriteRequest(CommitOptions):
    """One write, which becomes at most one snapshot (besides compactions before it).

    kinds         int8 per row as RowKind; None: all rows are put. Append-only tables take +I only
    partition     OVERWRITE_STATIC: partition column → value; rows may leave these columns out
    new_schema    made from the table's schema N, with id N + 1; committed with the rows, under the next free number
    operation     what the snapshot says that it was; None: a write
    computed_from the rows were computed from this snapshot (0: from the empty table) and are right on it only;
                  `computed_from_unique` (Snapshot.unique): and it must still be that very one
    identity      the rows were made for the table of this identity only (TableStore.identity)
    emptied       OVERWRITE_PARTITIONS: partitions (bytes) whose rows go though no row of the write lies there
    early         who gets changelog rows of the write before its snapshot exists; nobody does of a staged one
    """

    rows: pa.Table | None = None
    kinds: pa.Array | npt.NDArray[np.int8] | None = None
    partition: Mapping[str, object] = field(default_factory=dict)
    new_schema: TableSchema | None = None
    operation: str | None = None
    computed_from: int | None = None
    computed_from_unique: str | None = None
    identity: str | None = None
    emptied: frozenset[bytes] = frozenset()
    early: ReceiveRows | None = None

    def schema_of_rows(self, schema: TableSchema, *, has_kinds: bool) -> TableSchema:
        """By which rows are checked. `has_kinds`: they bring their kinds, so no column is asked.

        A statement that writes all rows of a table without a key again leaves NULL in those that it does not change,
        and has put defaults into the others.
        """
        if not has_kinds and self.computed_from is None:
            return schema
        from tablestore_engine.format.column_default import without_defaults  # noqa: PLC0415 - decision 0137
        from tablestore_engine.format.kind_column import without_kind_column  # noqa: PLC0415

        schema = without_kind_column(schema)
        return schema if self.computed_from is None or schema.is_keyed else without_defaults(schema)

    @property
    def forgets_keys(self) -> bool:
        """Whether the rows take the place of all others, of the table or of partitions. Not of a write into a stage of
        several: a key that goes and comes in one snapshot has to stay in its dynamic bucket, or nothing orders the two.
        """
        return self.mode.is_overwrite and self.mode is not WriteMode.REPLACE and not self.builds_on_stage


@dataclass(frozen=True)
class Extent:
    """`covers`: the buckets with files that the write reads and may change; `picks`: their rows that give way."""

    scope: ConflictScope
    covers: Callable[[BucketId], bool]
    picks: RowFilter | None = None

    @property
    def rewrites(self) -> bool:
        """Whether every stored row of the extent gives way."""
        return self.picks == EVERY_ROW

    @property
    def needs_positions(self) -> bool:
        """Whether files must lie as they were: nothing may be joined before this write."""
        return isinstance(self.picks, RowPositions)


def plan_extent(
    mode: WriteMode,
    schema: TableSchema,
    buckets: Collection[BucketId],
    partition: Mapping[str, object],
    replaces: RowFilter | None = None,
) -> Extent:
    """The part of the table that a write with rows in `buckets` is about. Raises FixRequest TS1311, TS1385, TS1387."""
    if mode is WriteMode.OVERWRITE_STATIC and partition:
        return _static_extent(schema, partition)
    if mode is WriteMode.REPLACE:
        if replaces is None:
            raise FixRequest(
                "TS1387",
                "a replacing write does not say which rows it replaces",
                why="mode replace goes with a filter: an interval, keys or positions",
                fix="set replaces, or use mode overwrite_table to replace all rows",
            )
        return Extent(ConflictScope(everything=True), lambda _: True, check_filter(replaces, schema))
    dynamic = mode is WriteMode.OVERWRITE_PARTITIONS and bool(schema.partition_keys)
    if dynamic:
        partitions = frozenset(one for one, _ in buckets)
        return Extent(ConflictScope(partitions=partitions), lambda key: key[0] in partitions, EVERY_ROW)
    if mode.is_overwrite:
        return Extent(ConflictScope(everything=True), lambda _: True, EVERY_ROW)
    if not schema.is_keyed and schema.bucket_count <= 0:
        return Extent(ConflictScope(), lambda _: False)
    wanted = frozenset(buckets)
    return Extent(ConflictScope(buckets=wanted), lambda key: key in wanted)


def _static_extent(schema: TableSchema, partition: Mapping[str, object]) -> Extent:
    """One partition when all keys are given, else all that agree (new ones may appear: everything conflicts)."""
    values = static_values(schema, partition)
    spec = PartitionSpec.of(schema)
    if len(values) == len(schema.partition_keys):
        only = spec.encode([values[name] for name in schema.partition_keys])
        return Extent(ConflictScope(partitions=frozenset([only])), lambda key: key[0] == only, EVERY_ROW)

    def covers(key: BucketId) -> bool:
        found = dict(zip(schema.partition_keys, spec.decode(key[0]), strict=True))
        return all(found[name] == value for name, value in values.items())

    return Extent(ConflictScope(everything=True), covers, EVERY_ROW)


def static_values(schema: TableSchema, partition: Mapping[str, object]) -> dict[str, object]:
    """Values as their columns have them. Raises FixRequest TS1311 for an unknown or repeated column, a bad value."""
    made: dict[str, object] = {}
    known = {name.lower(): name for name in schema.partition_keys}
    for given, value in partition.items():
        name = known.get(given.lower(), given)
        if name not in schema.partition_keys or name in made:
            raise FixRequest(
                "TS1311",
                f"{given!r} is {'given twice' if name in made else 'no partition column'}",
                why=f"the table is partitioned by {', '.join(schema.partition_keys) or 'nothing'}",
                fix="name partition columns only, each once",
            )
        type_ = type_to_arrow(schema.field(name).type)
        try:
            made[name] = pa.array([value]).cast(type_)[0].as_py() if value is not None else None
        except (pa.ArrowException, OverflowError, ValueError) as wrong:  # years that Python's dates lack too
            raise FixRequest(
                "TS1311",
                f"partition {name}={sql_literal(value)} is no {type_}",
                why=str(wrong),
                fix="write a value of the column's type",
            ) from wrong
    return made


def with_constants(rows: pa.Table, schema: TableSchema, partition: Mapping[str, object]) -> pa.Table:
    """Rows with the static partition columns filled in. Raises FixData TS1620 for rows of another partition."""
    for name, value in static_values(schema, partition).items():
        type_ = type_to_arrow(schema.field(name).type)
        constant = pa.scalar(value, type_)
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.repeat(constant, rows.num_rows))
            continue
        column = rows.column(name).cast(type_)
        fits = column.is_null() if value is None else pc.equal(column, constant).fill_null(False)
        outside = rows.num_rows - int(pc.sum(fits).as_py() or 0)
        if outside:
            rows_do = count_of(outside, "row does", "rows do")
            raise FixData(
                "TS1620",
                f"{rows_do} not belong to the partition that is overwritten",
                why=f"{name} must be {sql_literal(value)} in all rows",
                fix="filter the rows, or overwrite the partitions that occur in them",
            )
    return rows


def checked_kinds(request: WriteRequest, schema: TableSchema) -> npt.NDArray[np.int8] | None:
    """The row kinds of a request. Raises FixRequest TS1312 for deletes without a key."""
    if request.kinds is None:
        return None
    kinds = np.asarray(request.kinds).astype(np.int8)
    if not schema.is_keyed:
        if bool((kinds != RowKind.INSERT).any()):
            raise FixRequest(
                "TS1312",
                "rows of an append-only table cannot be updated or deleted by kind",
                why="without a primary key nothing says which row is meant",
                fix="give the table a primary key, or overwrite its partitions",
            )
        return None
    return None if bool((kinds == RowKind.INSERT).all()) else kinds
