"""A stream of Spark over a table, without Spark: where it begins, what it notices, in which columns."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from tablestore_engine.datasource import slices
from tablestore_engine.datasource.asked_columns import SnapshotRows, all_columns, find_columns
from tablestore_engine.datasource.spark_source import TablestoreSource
from tablestore_engine.datasource.stream_reader import TablestoreStreamReader
from tablestore_engine.datasource.stream_versions import ReadAllAvailable
from tablestore_engine.errors import FixRequest, NotFound, TablestoreError, Unsupported
from tablestore_engine.format import schema as table_schema
from tablestore_engine.format.data_type import STRING, DataField, DataType
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.schema_change import add_column, drop_column, rename_column, retype_column
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.store.table_store import TableStore
from tests.unit.datasource.query_world import Checkpoint, Crash, reader_of, run_query, struct
from tests.unit.store.expiry_world import newest
from tests.unit.store.table_world import delete, make_table, put, row
from tests.unit.stream.stream_world import reader as stream_of


def told(checkpoint: Checkpoint) -> list[list[tuple[object, ...]]]:
    """(kind, id, snapshot) of each batch."""
    return [
        [(one["_row_kind"], one["id"], one["_snapshot_id"]) for one in checkpoint.batches[number]]
        for number in sorted(checkpoint.batches)
    ]


def code_of(root: Path, checkpoint: Checkpoint, **options: str) -> str:
    """What the next run ends with."""
    try:
        run_query(reader_of(root, **options), checkpoint)
    except TablestoreError as error:
        return error.code
    return "done"


def test_a_crash_in_the_first_batch_moves_nothing(tmp_path: Path) -> None:
    """The rows of snapshot 1 were planned; the next start, at snapshot 2, gives them and then the change, once each."""
    store, checkpoint = make_table(tmp_path), Checkpoint()
    put(store, row(1))
    with pytest.raises(Crash):
        run_query(reader_of(tmp_path), checkpoint, crash_at="after offsets")
    put(store, row(2))
    run_query(reader_of(tmp_path), checkpoint)
    assert told(checkpoint) == [[("+I", 1, 1)], [("+I", 2, 2)]]


def test_latest_begins_where_the_first_run_stood(tmp_path: Path) -> None:
    """A first batch without rows pins the place: what is committed before the next run is told by it."""
    store, checkpoint = make_table(tmp_path), Checkpoint()
    put(store, row(1))
    run_query(reader_of(tmp_path, **{"scan.mode": "latest"}), checkpoint, available_now=False)
    assert told(checkpoint) == [[]]
    put(store, row(2))
    run_query(reader_of(tmp_path, **{"scan.mode": "latest"}), checkpoint)
    assert told(checkpoint) == [[], [("+I", 2, 2)]]


def test_without_news_the_offset_is_the_same_text(tmp_path: Path) -> None:
    """Spark compares texts: another one would be an empty batch at each trigger."""
    put(make_table(tmp_path), row(1))
    reader = reader_of(tmp_path)
    first = json.dumps(reader.latestOffset(reader.initialOffset(), ReadAllAvailable()))
    assert json.dumps(reader.latestOffset(json.loads(first), ReadAllAvailable())) == first
    assert len(first) < 700


@pytest.mark.parametrize(
    ("limit", "batches"),
    [
        ({}, [[1, 2, 3, 4]]),
        ({"maxSnapshotsPerTrigger": "2"}, [[1, 2], [3, 4]]),
        ({"maxRowsPerTrigger": "3"}, [[1, 2, 3], [4]]),
        ({"read.stream.maxRowsPerTrigger": "1"}, [[1], [2], [3], [4]]),
        ({"maxBytesPerTrigger": "1"}, [[1], [2], [3], [4]]),
    ],
)
def test_limits_make_batches_of_whole_snapshots(
    tmp_path: Path, limit: dict[str, str], batches: list[list[int]]
) -> None:
    """At least one snapshot each; a compaction between them is no batch."""
    store, checkpoint = make_table(tmp_path), Checkpoint()
    for number in (1, 2):
        put(store, row(number))
    store.compact(full=True)
    for number in (3, 4):
        put(store, row(number))
    run_query(reader_of(tmp_path, **{"scan.mode": "earliest", **limit}), checkpoint)
    assert [[one["id"] for one in checkpoint.batches[n]] for n in sorted(checkpoint.batches)] == batches


def test_what_comes_after_the_start_is_not_for_an_available_now(tmp_path: Path) -> None:
    """It ends at what was there when it was prepared."""
    store = make_table(tmp_path)
    put(store, row(1))
    reader = reader_of(tmp_path, **{"scan.mode": "earliest"})
    reader.prepareForTriggerAvailableNow()
    put(store, row(2))
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert end["end"]["snapshot"] == 2
    assert reader.latestOffset(end, ReadAllAvailable()) is end


def test_a_consumer_holds_what_the_query_needs(tmp_path: Path) -> None:
    """From before the first row on; behind a batch it moves when the next one is planned."""
    store, checkpoint = make_table(tmp_path), Checkpoint()
    for number in range(1, 4):
        put(store, row(number))
    options = {"scan.mode": "earliest", "consumer-id": "q", "maxSnapshotsPerTrigger": "1"}
    with pytest.raises(Crash):
        run_query(reader_of(tmp_path, **options), checkpoint, crash_at="after offsets")
    store.expire(newest(1))
    assert store.snapshots.list_ids() == (1, 2, 3)
    with pytest.raises(Crash):
        run_query(reader_of(tmp_path, **options), checkpoint, crash_at="after sink", after=1)
    store.expire(newest(1))
    assert store.snapshots.list_ids() == (2, 3)
    run_query(reader_of(tmp_path, **options), checkpoint)
    assert told(checkpoint) == [[("+I", n, n)] for n in (1, 2, 3)]


def test_a_new_checkpoint_goes_on_at_the_consumer(tmp_path: Path) -> None:
    """Unless its progress is to be ignored."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2))
    options = {"scan.mode": "earliest", "consumer-id": "q", "maxSnapshotsPerTrigger": "1"}
    with pytest.raises(Crash):
        run_query(reader_of(tmp_path, **options), Checkpoint(), crash_at="before sink", after=1)
    second, third = Checkpoint(), Checkpoint()
    run_query(reader_of(tmp_path, **options), second)
    assert told(second) == [[("+I", 2, 2)]]
    run_query(reader_of(tmp_path, **options, **{"consumer.ignore-progress": "true"}), third)
    assert told(third) == [[("+I", 1, 1)], [("+I", 2, 2)]]


def test_a_consumer_of_the_log_is_not_taken_over(tmp_path: Path) -> None:
    """Its place in the log says nothing of files (TS1449)."""
    store = make_table(tmp_path)
    put(store, row(1))
    position = {
        "version": 1, "table": store.identity, "snapshot": 1, "part": "log", "rows": 0,
        "log": {"id": "x", "beginning": "0@0:0", "next": {"0": 5}},
    }  # fmt: skip
    folder = tmp_path / "demo.db/t/consumer"
    folder.mkdir()
    (folder / "consumer-q").write_text(
        json.dumps({"nextSnapshot": 1, "tablestore.position": json.dumps(position)})
    )
    assert code_of(tmp_path, Checkpoint(), **{"consumer-id": "q"}) == "TS1449"


def test_a_start_goes_on_within_a_snapshot_where_its_consumer_stopped(tmp_path: Path) -> None:
    """A consumer of Table.stream that was within the rows, or the changes, of a snapshot: what is left comes, once."""
    for at, mode in (("full", "latest-full"), ("changes", "earliest")):
        root = tmp_path / at
        store, checkpoint = make_table(root), Checkpoint()
        put(store, *(row(number) for number in range(5)))
        stream = stream_of(store, mode, consumer_id="q", batch_rows=2)
        first = [one["id"] for one in next(stream).to_pylist()]
        stream.commit()
        run_query(reader_of(root, **{"consumer-id": "q"}), checkpoint)
        assert sorted([*first, *(one["id"] for one in checkpoint.rows)]) == [0, 1, 2, 3, 4]


def _began(root: Path, **options: str) -> tuple[TableStore, Checkpoint]:
    """Two snapshots; the first is delivered."""
    store, checkpoint = make_table(root), Checkpoint()
    put(store, row(1))
    put(store, row(2))
    run_query(reader_of(root, **{"scan.mode": "earliest", **options}), checkpoint)
    return store, checkpoint


def test_expiry_while_stopped_is_an_error(tmp_path: Path) -> None:
    """TS1337, never a gap."""
    store, checkpoint = _began(tmp_path)
    put(store, row(3))
    put(store, row(4))
    store.expire(newest(1))
    assert code_of(tmp_path, checkpoint) == "TS1337"


def test_a_rollback_while_stopped_is_an_error(tmp_path: Path) -> None:
    """Also when as many snapshots are there again (TS1338), and for a batch that was planned but not read."""
    store, checkpoint = _began(tmp_path)
    store.rollback(1)
    assert code_of(tmp_path, checkpoint) == "TS1338"
    put(store, row(9))
    assert code_of(tmp_path, checkpoint) == "TS1338"
    other = tmp_path / "planned"
    store, planned = make_table(other), Checkpoint()
    put(store, row(1))
    put(store, row(2))
    with pytest.raises(Crash):
        run_query(reader_of(other, **{"scan.mode": "earliest"}), planned, crash_at="after offsets")
    store.rollback(1)
    assert code_of(other, planned) == "TS1338"
    put(store, row(9))
    assert code_of(other, planned) == "TS1338"
    assert planned.batches == {}


def test_another_table_of_the_name_is_an_error(tmp_path: Path) -> None:
    """TS1335: dropped and made anew while the query was stopped."""
    _, checkpoint = _began(tmp_path)
    (tmp_path / "demo.db/t").rename(tmp_path / "old")
    assert code_of_missing(tmp_path) == "TS1414"
    put(make_table(tmp_path, options={"bucket": "3"}), row(1))
    assert code_of(tmp_path, checkpoint) == "TS1335"


def code_of_missing(root: Path) -> str:
    """What a load says of a table that is not there."""
    source = TablestoreSource({"warehouse": str(root), "table": "demo.t"})
    with pytest.raises(NotFound) as error:
        source.schema()
    return error.value.code


def test_a_task_never_reads_another_snapshot(tmp_path: Path) -> None:
    """Rolled back and committed anew between planning and reading: the task fails (TS1338), and for files as well."""
    for mode in ("earliest", "latest-full"):
        root = tmp_path / mode
        store = make_table(root)
        put(store, row(1))
        put(store, row(2))
        reader = reader_of(root, **{"scan.mode": mode})
        end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        slices = pickle.loads(pickle.dumps(reader.partitions(reader.initialOffset(), end)))
        store.rollback(1)
        put(store, row(9))
        with pytest.raises(FixRequest) as error:
            list(pickle.loads(pickle.dumps(reader)).read(slices[-1]))
        assert error.value.code == "TS1338"


def test_columns_of_the_start_while_the_table_changes(tmp_path: Path) -> None:
    """A new column is not seen and a renamed one keeps its name, until the next start; older rows have NULL then."""
    store, checkpoint = make_table(tmp_path), Checkpoint()
    put(store, row(1))
    reader = reader_of(tmp_path, **{"scan.mode": "earliest"})
    store.alter(lambda schema: rename_column(schema, "name", "title"))
    store.alter(lambda schema: add_column(schema, "extra", parse_type("INT")))
    put(store, {"id": 2, "title": "b", "n": 0, "extra": 7})
    run_query(reader, checkpoint)
    assert [(one["id"], one["name"]) for one in checkpoint.rows] == [(1, "a"), (2, "b")]
    assert all(set(one) == {"id", "name", "n", "_row_kind", "_snapshot_id"} for one in checkpoint.rows)
    again = Checkpoint()
    run_query(reader_of(tmp_path, **{"scan.mode": "earliest"}), again)
    assert [(one["title"], one["extra"]) for one in again.rows] == [("a", None), ("b", 7)]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda schema: drop_column(schema, "n"), "dropped"),
        (lambda schema: retype_column(schema, "n", parse_type("BIGINT")), "made BIGINT"),
    ],
)
def test_a_column_that_goes_or_gets_wider_ends_the_query(
    tmp_path: Path, change: Callable[[TableSchema], TableSchema], word: str
) -> None:
    """TS1447, behind everything before it; not for a query without that column, nor for the next start."""
    store, checkpoint = make_table(tmp_path), Checkpoint()
    put(store, row(1))
    options = {"scan.mode": "earliest"}
    reader, without = (
        reader_of(tmp_path, **options),
        reader_of(tmp_path, "id bigint, _row_kind string", **options),
    )
    store.alter(change)
    put(store, {"id": 2, "name": "b", **({} if word == "dropped" else {"n": 2**40})})
    with pytest.raises(FixRequest) as error:
        run_query(reader, checkpoint)
    assert error.value.code == "TS1447"
    assert word in error.value.what
    assert [one["id"] for one in checkpoint.rows] == [1]
    narrow = Checkpoint()
    run_query(without, narrow)
    assert [one["id"] for one in narrow.rows] == [1, 2]
    run_query(reader_of(tmp_path, **options), checkpoint)
    assert [one["id"] for one in checkpoint.rows] == [1, 2]


def test_a_batch_that_was_planned_before_a_column_went_is_read_by_the_next_start(tmp_path: Path) -> None:
    """Without the column: the rows are there, the batch is whole."""
    store, checkpoint = make_table(tmp_path), Checkpoint()
    put(store, row(1))
    with pytest.raises(Crash):
        run_query(reader_of(tmp_path), checkpoint, crash_at="after offsets")
    store.alter(lambda schema: drop_column(schema, "n"))
    run_query(reader_of(tmp_path), checkpoint)
    assert checkpoint.batches[0] == [{"id": 1, "name": "a", "_row_kind": "+I", "_snapshot_id": 1}]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ("name string, id bigint", None),
        ("_snapshot_id bigint", None),
        ("ID bigint", None),
        ("id int", "TS1445"),
        ("nothing string", "TS1445"),
        ("id bigint not null", "TS1445"),
        ("_row_kind int", "TS1445"),
    ],
)
def test_asked_columns_are_the_tables(tmp_path: Path, wanted: str, code: str | None) -> None:
    """`.schema(…)` chooses among them and reads nothing else; another name or type is refused."""
    put(make_table(tmp_path, keys=()), row(1))
    if code is not None:
        with pytest.raises(FixRequest) as error:
            reader_of(tmp_path, wanted)
        assert error.value.code == code
        return
    found = Checkpoint()
    run_query(reader_of(tmp_path, wanted), found)
    values = {"name": "a", "id": 1, "ID": 1, "_snapshot_id": 1}
    assert found.rows == [{name: values[name] for name in struct(wanted).names}]


def test_rows_have_the_arrow_types_that_spark_takes(tmp_path: Path) -> None:
    """Of every type, as pyspark's own rule has them; a column of nanoseconds is refused."""
    texts = DataType("ARRAY", element=STRING)
    columns = {
        "id": "BIGINT", "b": "BOOLEAN", "i1": "TINYINT", "i2": "SMALLINT", "i4": "INT", "f": "FLOAT", "d": "DOUBLE",
        "dec": "DECIMAL(20, 3)", "c": "CHAR(3)", "v": "VARCHAR(9)", "bin": "BINARY(2)", "vb": "BYTES", "da": "DATE",
        "t3": "TIMESTAMP(3)", "t6": "TIMESTAMP(6)", "z3": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        "var": "VARIANT", "a": DataType("ARRAY", element=DataType("INT", nullable=False)),
        "m": DataType("MAP", key=STRING, value=DataType("TIMESTAMP", precision=3)),
        "ms": DataType("MULTISET", element=STRING),
        "r": DataType("ROW", fields=(DataField(0, "x", DataType("INT")), DataField(0, "y", texts))),
    }  # fmt: skip
    store = make_table(tmp_path, keys=(), columns=columns)
    moment = datetime.fromisoformat("2026-01-02T03:04:05.678")
    variant = {"value": b"\0", "metadata": b"\1\0\0"}
    values = {
        "id": 1, "b": True, "i1": 1, "i2": 2, "i4": 3, "f": 0.5, "d": 0.25, "dec": Decimal("1.125"), "c": "abc",
        "v": "v", "bin": b"ab", "vb": b"x", "da": date(2026, 1, 2), "t3": moment, "t6": moment, "var": variant,
        "z3": moment.replace(tzinfo=UTC), "a": [1, 2], "m": [("k", moment)], "ms": [("e", 2)],
        "r": {"x": 1, "y": ["q", None]},
    }  # fmt: skip
    schema = store.schema.arrow_schema()
    arrays = [pa.array([values[field.name], None], field.type) for field in schema]
    wanted = all_columns(store.schema, with_changes=True)
    changes = SnapshotRows(pa.Table.from_arrays(arrays, schema=schema), pa.array([0, 3]), 1)
    batches = list(changes.to_spark(find_columns(wanted, store.schema)))
    expected = to_arrow_schema(wanted, timezone="UTC")
    assert all(batch.schema.equals(expected) for batch in batches)
    (got, empty) = pa.Table.from_batches(batches).to_pylist()
    assert got == values | {"_row_kind": "+I", "_snapshot_id": 1}
    assert {key for key, value in empty.items() if value is not None} == {"_row_kind", "_snapshot_id"}
    with pytest.raises(Unsupported, match="TS1508"):
        all_columns(
            make_table(tmp_path / "fine", columns={"id": "BIGINT", "t": "TIMESTAMP(9)"}).schema,
            with_changes=False,
        )


@pytest.mark.parametrize(
    ("options", "kinds", "code"),
    [
        ({"rowKinds": "all"}, ["+I", "+I", "-U", "+U", "-D"], None),
        ({"rowKinds": "all", "skipDeletes": "true"}, ["+I", "+I", "-U", "+U"], None),
        ({"rowKinds": "upserts", "skipDeletes": "true"}, ["+I", "+I", "+U"], None),
        ({"rowKinds": "upserts"}, ["+I", "+I", "+U"], "TS1443"),
        ({"rowKinds": "appends", "skipDeletes": "true"}, ["+I", "+I"], "TS1443"),
    ],
)
def test_row_kinds_are_chosen_and_never_lost_in_silence(
    tmp_path: Path, options: dict[str, str], kinds: list[str], code: str | None
) -> None:
    """What the choice has no place for ends the query, behind the batches before it."""
    store, checkpoint = make_table(tmp_path), Checkpoint()
    put(store, row(1), row(2))
    put(store, row(1, "b"))
    delete(store, {"id": 2})
    said = {"scan.mode": "earliest", "maxSnapshotsPerTrigger": "1", **options}
    assert code_of(tmp_path, checkpoint, **said) == (code or "done")
    assert [one["_row_kind"] for one in checkpoint.rows] == kinds


def test_a_stream_without_kinds_takes_appends_only(tmp_path: Path) -> None:
    """Where rows do not say what they are, an update is refused, unless upserts are asked for."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(1, "b"))
    for kinds, seen in ((None, "TS1443"), ("all", "TS1442"), ("upserts", "done")):
        options = {"scan.mode": "earliest", **({} if kinds is None else {"rowKinds": kinds})}
        try:
            run_query(reader_of(tmp_path, "id bigint, name string", **options), Checkpoint())
            code = "done"
        except FixRequest as error:
            code = error.code
        assert code == seen


def test_a_large_snapshot_is_read_by_several_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files by size; a table whose rows are merged on reading by whole buckets; small snapshots share a task."""
    monkeypatch.setattr(slices, "SLICE_BYTES", 1)
    store, found = make_table(tmp_path, options={"bucket": "3"}), Checkpoint()
    for _ in range(3):
        put(store, *(row(number) for number in range(30)))
    put(store, *(row(number, "b") for number in range(0, 30, 2)))
    reader = reader_of(tmp_path)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert len(reader.partitions({}, end)) >= 3
    run_query(reader, found)
    assert sorted(one["id"] for one in found.rows) == list(range(30))
    assert {one["id"] % 2: one["name"] for one in found.rows} == {0: "b", 1: "a"}
    entries = store.context.scanner.live_entries(store.snapshots.get(4))
    groups = slices.group_files(entries, by_bucket=True)
    assert sorted(place[1:] for group in groups for place in group) == [(0, ""), (1, ""), (2, "")]
    reader = reader_of(tmp_path, **{"scan.mode": "earliest"})
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert len(reader.partitions({}, end)) == 1


def test_an_empty_table_is_waited_for(tmp_path: Path) -> None:
    """No snapshot yet: an empty batch, then the first rows."""
    store, checkpoint = make_table(tmp_path), Checkpoint()
    run_query(reader_of(tmp_path), checkpoint)
    put(store, row(1))
    run_query(reader_of(tmp_path), checkpoint)
    assert told(checkpoint) == [[], [("+I", 1, 1)]]


def test_a_stream_needs_a_pyspark_that_says_where_it_is(tmp_path: Path) -> None:
    """With 4.1 it is refused by name (TS1448); a batch read is not."""
    put(make_table(tmp_path), row(1))

    class Old(TablestoreSource):
        spark_version = "4.1.4"

    source = Old({"warehouse": str(tmp_path), "table": "demo.t"})
    with pytest.raises(Unsupported) as error:
        source.streamReader(source.schema())
    assert error.value.code == "TS1448"
    assert "4.2" in error.value.what
    for version in ("4.2.0", "4.3.0.dev1", "5.0"):
        Old.spark_version = version
        assert isinstance(source.streamReader(source.schema()), TablestoreStreamReader)


def test_a_column_of_the_tables_own_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of another engine may have one: its changelog is refused (TS1446), the table's rows are not."""
    monkeypatch.setattr(table_schema, "CHANGE_COLUMNS", ())
    store = make_table(tmp_path, keys=(), columns={"id": "BIGINT", "_row_kind": "STRING"})
    with pytest.raises(FixRequest) as error:
        all_columns(store.schema, with_changes=True)
    assert error.value.code == "TS1446"
    assert all_columns(store.schema, with_changes=False).names == ["id", "_row_kind"]
    put(store, {"id": 1, "_row_kind": "mine"})
    found = Checkpoint()
    run_query(reader_of(tmp_path, "id bigint, _row_kind string, _snapshot_id bigint"), found)
    assert found.rows == [{"id": 1, "_row_kind": "mine", "_snapshot_id": 1}]
