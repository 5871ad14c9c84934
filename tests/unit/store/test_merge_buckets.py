"""merge_buckets: many small buckets in one pass give the files, vectors, counts and errors of each bucket alone."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore_engine.errors import FixData
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.schema_change import add_column
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.store.files.bucket_state import BucketChange, BucketId, BucketState
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.rows.routing import route_rows
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tasks.bucket_plan import plan_preparation, plan_rows
from tablestore_engine.store.tasks.bucket_task import BucketTask, TaskTable
from tablestore_engine.store.tasks.small_upserts import group_upserts
from tablestore_engine.store.tasks.task_runner import FileAccess, run_and_hand_on, run_tasks
from tests.doses import cases

COLUMNS = pa.schema(
    {
        "p": pa.string(), "id": pa.int64(), "k2": pa.string(), "n": pa.int32(), "text": pa.string(),
        "f": pa.float64(), "d": pa.decimal128(20, 3), "small": pa.decimal128(9, 2), "at": pa.timestamp("ms"),
        "day": pa.date32(), "ok": pa.bool_(), "raw": pa.binary(), "list": pa.list_(pa.int32()),
        "moment": pa.timestamp("us", "UTC"),
    }
)  # fmt: skip
VECTORS = {"deletion-vectors.enabled": "true", "num-levels": "8", "bucket": "2"}
LOOKUP = {**VECTORS, "changelog-producer": "lookup"}
TABLES: Mapping[str, Mapping[str, str]] = {
    "newest row": LOOKUP,
    "no changelog": {**VECTORS, "changelog-producer": "none"},
    "last of repeated keys": {**LOOKUP, "tablestore.duplicates": "last"},
    "sequence field": {**LOOKUP, "sequence.field": "n,at"},
    "sequence field, descending, no changelog": {
        **VECTORS, "changelog-producer": "none", "sequence.field": "at", "sequence.field.sort-order": "descending",
    },
    "equal rows stay": {**LOOKUP, "changelog-producer.row-deduplicate": "true"},
    "first row": {"merge-engine": "first-row", "changelog-producer": "lookup", "num-levels": "8", "bucket": "2",
                  "ignore-delete": "true"},
    "aggregation": {**LOOKUP, "merge-engine": "aggregation", "fields.n.aggregate-function": "sum",
                    "fields.text.aggregate-function": "max", "fields.f.aggregate-function": "last_non_null_value"},
    "lists without repeats": {
        **LOOKUP, "merge-engine": "aggregation", "fields.list.aggregate-function": "collect",
        "fields.list.distinct": "true",
        **{f"fields.{name}.ignore-retract": "true" for name in COLUMNS.names[3:] if name != "list"},
    },
    "partial update": {**LOOKUP, "merge-engine": "partial-update", "ignore-delete": "true"},
    "partial update, groups": {**LOOKUP, "merge-engine": "partial-update", "fields.n.sequence-group": "text,f",
                               "partial-update.remove-record-on-delete": "false", "ignore-delete": "true"},
    "few statistics": {**LOOKUP, "metadata.stats-mode": "counts", "fields.text.stats-mode": "truncate(2)"},
    "all statistics, snappy": {**LOOKUP, "metadata.stats-mode": "full", "file.compression": "snappy",
                               "file.compression.per.level": "7:gzip,5:none,4:lz4"},
}  # fmt: skip


def _schema(options: Mapping[str, str]) -> TableSchema:
    return new_schema(COLUMNS, primary_keys=("p", "id", "k2"), partition_keys=("p",), options=options)


class Buckets:
    """All buckets of a table; what a write does to them is committed by `take`."""

    def __init__(self, root: Path, schema: TableSchema) -> None:
        self.schema = schema
        self.layout = TableLayout(str(root / "t"))
        self.access = FileAccess(LocalFileIO(str(root)), SYSTEM)
        self.states: dict[BucketId, BucketState] = {}

    @property
    def table(self) -> TaskTable:
        """As tasks see it."""
        return TaskTable(self.layout, TableTraits(self.schema))

    def plan(self, rows: Sequence[Mapping[str, Any]], kinds: Sequence[int] | None) -> Sequence[BucketTask]:
        """The tasks of these rows."""
        arrow = pa.Table.from_pylist(list(rows), schema=self.schema.arrow_schema())
        routed = route_rows(arrow, None if kinds is None else np.array(kinds, np.int8), self.schema)
        return plan_rows(self.table, routed, self.states, None)

    def compact(self) -> None:
        """Every bucket that needs it."""
        for task in plan_preparation(self.table, self.states.values()):
            self.take(task, run_and_hand_on(task, self.access))

    def take(self, task: BucketTask, change: BucketChange) -> None:
        """Make the change the state of its bucket."""
        state = task.state
        gone = {meta.file_name for meta in change.removed}
        kept = [file for file in state.files if file.meta.file_name not in gone]
        vectors = state.deletion_vectors if change.deletion_vectors is None else change.deletion_vectors
        files = [*kept, *(self.stored(state, meta) for meta in change.added)]
        self.states[state.partition_bytes, state.bucket] = replace(
            state, files=tuple(replace(one, deleted=vectors.get(one.meta.file_name)) for one in files)
        )

    def stored(self, state: BucketState, meta: DataFileMeta) -> StoredFile:
        """A new file of the bucket."""
        path = self.layout.data_file(state.partition_path, state.bucket, meta.file_name)
        return StoredFile(
            state.partition, state.partition_bytes, state.partition_path, state.bucket,
            self.schema.bucket_count, meta, path, self.schema,
        )  # fmt: skip

    def facts(self, task: BucketTask, change: BucketChange) -> object:
        """Everything that a change says and writes, but names and times."""

        def of(metas: Sequence[DataFileMeta]) -> object:
            return [
                (replace(meta, file_name="", creation_time=None),
                 self.access.fileio.read(self.stored(task.state, meta).path))
                for meta in metas
            ]  # fmt: skip

        vectors = change.deletion_vectors
        counts = (change.inserted, change.updated, change.deleted, change.unchanged, change.total_buckets)
        held = None if vectors is None else {name: sorted(bits) for name, bits in vectors.items() if bits}
        place = (change.partition_bytes, change.bucket)
        return place, counts, held, of(change.added), of(change.removed), of(change.changelog)


def _value(chance: random.Random, name: str) -> object:
    if chance.random() < 0.15:
        return None
    return {
        "n": lambda: chance.randrange(5),
        "text": lambda: chance.choice(["", "a", "aé😀", "a" * 40, "b" * chance.randrange(30)]),
        "f": lambda: chance.choice([0.0, -0.0, float("nan"), float("inf"), chance.random()]),
        "d": lambda: Decimal(chance.randrange(-(10**19), 10**19)).scaleb(-3),
        "small": lambda: Decimal(chance.randrange(100)).scaleb(-2),
        "at": lambda: datetime(2020, 1, 1 + chance.randrange(5), tzinfo=UTC).replace(tzinfo=None),
        "day": lambda: date(1900 + chance.randrange(300), 1, 1),
        "ok": lambda: chance.random() < 0.5,
        "raw": lambda: chance.randbytes(chance.randrange(20)),
        "list": lambda: [chance.randrange(3) for _ in range(chance.randrange(4))],
        "moment": lambda: datetime(1960 + chance.randrange(99), 1, 1, tzinfo=UTC),
    }[name]()


def _rows(chance: random.Random, schema: TableSchema, turn: int, *, repeats: bool) -> list[dict[str, object]]:
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for number in range(chance.choice([3, 40, 150])):
        key = (
            chance.choice(["x", "y", "", "z/1", f"new {turn}"]),
            chance.randrange(15),
            chance.choice("abc"),
        )
        made = dict(zip(("p", "id", "k2"), key, strict=True))
        made |= {one: _value(chance, one) for one in schema.field_names if one not in made}
        rows[(*key, number) if repeats else key] = made
    return chance.sample(list(rows.values()), len(rows))


def _kinds(chance: random.Random, count: int, options: Mapping[str, str]) -> list[int] | None:
    if "fields.n.aggregate-function" in options or chance.random() < 0.3:
        return None
    return chance.choices([0, 1, 2, 3], [6, 1, 2, 2], k=count)


@pytest.mark.parametrize("name", cases(TABLES, 4))
@pytest.mark.parametrize("seed", cases(range(4), 1))
def test_pass_over_many_buckets_equals_each_bucket_alone(tmp_path: Path, name: str, seed: int) -> None:
    """Random batches: changes, bytes of files, vectors and errors are the same, and passes do have several buckets."""
    chance, options = random.Random(f"{name} {seed}"), TABLES[name]
    world = Buckets(tmp_path, _schema(options))
    shared = 0
    for turn in range(6):
        if turn == 3:  # files of an old schema stay: the column is NULL in them
            world.schema = add_column(world.schema, "later", parse_type("INT"))
        rows = _rows(
            chance, _schema(options), turn, repeats="duplicates" in str(options) or "sequence" in str(options)
        )
        world.compact()
        tasks = world.plan(rows, _kinds(chance, len(rows), options))
        shared += sum(len(group) > 1 for group in group_upserts(tasks))
        try:
            alone = [run_and_hand_on(task, world.access) for task in tasks]
        except FixData as refused:
            with pytest.raises(type(refused), match=refused.code):
                run_tasks(tasks, world.access)
            continue
        together = run_tasks(tasks, world.access)
        assert len(together) == len(tasks)
        for task, one, other in zip(tasks, alone, together, strict=True):
            assert world.facts(task, other) == world.facts(task, one)
            world.take(task, other)
    assert shared > 2


def test_files_of_another_writer_are_read_beside_ours(tmp_path: Path) -> None:
    """One bucket's file has columns that may be NULL: the outcome is that of each bucket alone."""
    world = Buckets(tmp_path, _schema(LOOKUP))
    for _ in range(2):
        tasks = world.plan(_rows(random.Random(1), world.schema, 0, repeats=False), None)
        alone, together = (
            [run_and_hand_on(task, world.access) for task in tasks],
            run_tasks(tasks, world.access),
        )
        assert max(map(len, group_upserts(tasks))) == len(tasks) > 2
        for task, one, other in zip(tasks, alone, together, strict=True):
            assert world.facts(task, other) == world.facts(task, one)
            world.take(task, other)
        path = next(iter(world.states.values())).files[0].path
        rows = pq.ParquetFile(path).read()
        nullable = pa.schema([field.with_nullable(True) for field in rows.schema])
        pq.write_table(pa.Table.from_arrays(rows.columns, schema=nullable), path, compression="gzip")


@pytest.mark.parametrize(
    "options",
    [
        {**VECTORS, "changelog-producer": "input"},
        {
            **LOOKUP,
            "changelog-producer.row-deduplicate": "true",
            "changelog-producer.row-deduplicate-ignore-fields": "text",
        },
        {**LOOKUP, "deletion-vectors.enabled": "false"},
        {**LOOKUP, "parquet.row-group-rows": "2"},
        {**LOOKUP, "file-index.bloom-filter.columns": "text"},
    ],
)
def test_upserts_with_other_changelogs_or_several_row_groups_are_performed_alone(
    tmp_path: Path, options: Mapping[str, str]
) -> None:
    """`input`, ignored columns, file indexes, no deletion vectors, several row groups: no pass is shared."""
    world = Buckets(tmp_path, _schema(options))
    tasks = world.plan(_rows(random.Random(0), world.schema, 0, repeats=False), None)
    assert [len(group) for group in group_upserts(tasks)] == [1] * len(tasks)
    assert len(tasks) > 2
