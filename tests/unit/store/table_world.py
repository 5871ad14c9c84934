"""A table on disk for tests of the store: make, write, read back as plain rows, look at changelogs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.commit.commit_report import CommitReport
from tablestore_engine.store.metadata.commit_history import following_properties
from tablestore_engine.store.metadata.schemas import SchemaStore
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.doubles.faults import seeded_runtime
from tests.doubles.reference_model import Frozen, freeze

KEYED = {
    "bucket": "1",
    "deletion-vectors.enabled": "true",
    "changelog-producer": "lookup",
    "write-only": "true",
    "num-levels": "20",
}
_SEEDS = itertools.count(1_000)  # two handles never share ids
COLUMNS = {"id": "BIGINT", "name": "STRING", "n": "INT"}
Row = dict[str, object]


def make_table(
    root: Path | str,
    *,
    keys: Sequence[str] = ("id",),
    partitions: Sequence[str] = (),
    columns: Mapping[str, str | DataType] | None = None,
    options: Mapping[str, str] | None = None,
    runtime: Runtime | None = None,
    fileio: FileIO | None = None,
) -> TableStore:
    """A new table `demo.db/t` below `root`; keyed with the options of our own tables unless `keys` is empty."""
    fields = [
        DataField(0, name, parse_type(type_) if isinstance(type_, str) else type_)
        for name, type_ in (columns or COLUMNS).items()
    ]
    schema = new_schema(
        fields,
        primary_keys=tuple(keys),
        partition_keys=tuple(partitions),
        options={**(KEYED if keys else {"bucket": "-1"}), **(options or {})},
    )
    store = open_table(root, runtime=runtime, fileio=fileio)
    assert SchemaStore(fileio or LocalFileIO(str(root)), TableLayout(store.location)).claim(schema)
    return store


def open_table(
    root: Path | str, *, runtime: Runtime | None = None, fileio: FileIO | None = None
) -> TableStore:
    """A fresh handle, as another process would have."""
    return TableStore(
        fileio or LocalFileIO(str(root)), f"{root}/demo.db/t", runtime or seeded_runtime(next(_SEEDS))
    )


def acting(point: str, action: Callable[[], object]) -> Runtime:
    """A runtime in which somebody else acts once, at that point of our commit."""
    done: list[bool] = []

    def act(name: str) -> None:
        if name == point and not done:
            done.append(True)
            action()

    return replace(seeded_runtime(next(_SEEDS)), on_crash_point=act)


def as_table(rows: Iterable[Row], schema: TableSchema) -> pa.Table:
    """Rows as Arrow, with the types of the table."""
    return pa.Table.from_pylist(list(rows), schema=schema.arrow_schema())


def put(store: TableStore, *rows: Row, **request: object) -> CommitReport:
    """Write rows; `request` are further fields of WriteRequest."""
    return store.write(WriteRequest(as_table(rows, store.schema), **request))  # type: ignore[arg-type]


def delete(store: TableStore, *rows: Row, **request: object) -> CommitReport:
    """Delete by key."""
    kinds = [int(RowKind.DELETE)] * len(rows)
    schema = pa.schema([field.with_nullable(True) for field in store.schema.arrow_schema()])
    table = pa.Table.from_pylist(list(rows), schema=schema)
    return store.write(WriteRequest(table, kinds=pa.array(kinds, pa.int8()), **request))  # type: ignore[arg-type]


def overwrite(store: TableStore, *rows: Row, **request: object) -> CommitReport:
    """Replace the whole table."""
    return put(store, *rows, mode=WriteMode.OVERWRITE_TABLE, **request)


def row(number: int, name: str = "a", n: int | None = 0, **more: object) -> Row:
    """A row of COLUMNS."""
    return {"id": number, "name": name, "n": n, **more}


def grow(store: TableStore, until: int, **changed: object) -> None:
    """Snapshots up to `until` as commits of that many users make them, without their data files."""
    newest = store.latest()
    assert newest is not None
    for number in range(newest.id + 1, until + 1):
        properties = following_properties(newest)
        newest = replace(
            newest,
            id=number,
            uuid=f"u{number}",
            commit_user=f"dbt-{number}",
            commit_identifier=1,
            properties=properties,
            **changed,  # type: ignore[arg-type]
        )
        assert store.snapshots.claim(newest)
    store.snapshots.write_hints(until)


def rows_of(store: TableStore, snapshot_id: int | None = None) -> list[Row]:
    """All rows of a snapshot, in an order of their own."""
    plan = store.plan_scan(None if snapshot_id is None else store.snapshots.get(snapshot_id))
    rows: list[Row] = store.read(plan).to_pylist()
    return sorted(rows, key=repr)


def changes_of(store: TableStore, snapshot_id: int) -> Counter[tuple[int, Frozen]]:
    """(kind, row) of one snapshot's changelog."""
    found: Counter[tuple[int, Frozen]] = Counter()
    for batch in ChangelogReader(store.context).read(store.snapshots.get(snapshot_id)):
        for one in batch.rows.to_pylist():
            found[one.pop("_ROW_KIND"), freeze(one)] += 1
    return found


def changes(*pairs: tuple[str, Row]) -> Counter[tuple[int, Frozen]]:
    """The same from ('+I', row) pairs."""
    return Counter((("+I", "-U", "+U", "-D").index(kind), freeze(one)) for kind, one in pairs)
