"""Writing modes: upsert, append, the three overwrites, buckets and partitions."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixData, FixRequest, RetryError, Unsupported
from tablestore_engine.format.data_file import SEQUENCE_NUMBER
from tablestore_engine.format.snapshot import CommitKind
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.parquet_input import ParquetInput
from tablestore_engine.store.rows.routing import route_rows
from tablestore_engine.store.rows.row_filter import EVERY_ROW, SameKeys
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.tasks.bucket_plan import plan_bucket
from tablestore_engine.store.tasks.task_runner import run_task
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.unit.store.table_world import (
    Row,
    as_table,
    changes,
    changes_of,
    delete,
    make_table,
    open_table,
    overwrite,
    put,
    row,
    rows_of,
)

PARTITIONED = {"id": "INT", "v": "STRING", "dt": "STRING"}


def keyed_by_day(root: Path, **options: str) -> TableStore:
    """A keyed table with partition dt and two buckets."""
    return make_table(
        root, keys=("id", "dt"), partitions=("dt",), columns=PARTITIONED, options={"bucket": "2", **options}
    )


def appended(root: Path, **options: str) -> TableStore:
    """An append-only table with partition dt."""
    return make_table(root, keys=(), partitions=("dt",), columns=PARTITIONED, options=options)


def day(number: int, dt: str | None, v: str = "a") -> Row:
    """A row of PARTITIONED."""
    return {"id": number, "v": v, "dt": dt}


def test_rows_reach_their_partition_and_bucket(tmp_path: Path) -> None:
    """Every (partition, bucket) gets its rows, NULL is a partition, and everything reads back."""
    store = keyed_by_day(tmp_path)
    rows = [day(number, dt) for number in range(20) for dt in ("x", "y/z", None)]
    report = put(store, *[one for one in rows if one["dt"] is not None])
    assert report.inserted == 40
    assert rows_of(store) == sorted([one for one in rows if one["dt"] is not None], key=repr)
    places = {(file.partition, file.bucket) for file in store.plan_scan().files}
    assert places == {(("x",), 0), (("x",), 1), (("y/z",), 0), (("y/z",), 1)}
    assert store.verify() == ()


@pytest.mark.parametrize("is_small", [True, False])
@pytest.mark.parametrize("key", ["BIGINT", "STRING"])
def test_route_rows_come_in_key_order_and_each_key_in_order_of_arrival(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_small: bool, key: str
) -> None:
    """One sort for all small buckets; a large one is sorted by its integers, and keeps texts in order of arrival."""
    store = make_table(
        tmp_path, partitions=("dt",), keys=("id", "dt"), columns={"id": key, "v": "STRING", "dt": "STRING"}
    )
    monkeypatch.setattr("tablestore_engine.lsm.arrow_take._THREADED_ROWS", 0)
    monkeypatch.setattr("tablestore_engine.store.rows.routing.SMALL_BUCKET_ROWS", 100 if is_small else 1)
    made = [n * 7 % 5 for n in range(20)]
    rows: list[Row] = [
        {"id": one if key == "BIGINT" else f"{one}", "v": f"{n}", "dt": f"d{n % 2}"}
        for n, one in enumerate(made)
    ]
    table = as_table(rows, store.schema)
    chunks = pa.concat_tables([table.slice(0, 3), table.slice(3, 9), table.slice(12)])
    routed = route_rows(chunks, None, store.schema)
    is_sorted = is_small or key == "BIGINT"
    for one, dt in zip(routed, ("d0", "d1"), strict=True):
        arrived = [row for row in rows if row["dt"] == dt]
        assert one.rows.to_pylist() == (
            sorted(arrived, key=lambda row: str(row["id"])) if is_sorted else arrived
        )


def test_route_rows_null_partition_in_several_chunks_returns_each_row_in_its_partition(
    tmp_path: Path,
) -> None:
    """Chunks that meet partition values in another order, NULL among them, go to the same partitions as one chunk."""
    store = appended(tmp_path)
    days = [["x", None, "y"], [None, "y"], ["z", "y", "x", None], [None]]
    chunks = [as_table([day(n, dt) for n, dt in enumerate(part)], store.schema) for part in days]
    many = pa.concat_tables(chunks)
    assert many.column("dt").num_chunks == len(days)
    routed = route_rows(many, None, store.schema)
    assert {one.partition: one.rows.num_rows for one in routed} == {
        (None,): 4,
        ("x",): 2,
        ("y",): 3,
        ("z",): 1,
    }
    assert all(set(one.rows.column("dt").to_pylist()) == set(one.partition) for one in routed)


@pytest.mark.parametrize(
    ("key", "is_exact"), [("BIGINT", True), ("STRING", True), ("DOUBLE", False), ("DECIMAL(5, 2)", False)]
)
def test_old_rows_take_keys_that_are_equal_by_bytes_from_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, is_exact: bool
) -> None:
    """Such keys are not decoded with the old rows, and the changelog has them all the same, of deletes too."""
    store = make_table(tmp_path, columns={"id": key, "name": "STRING", "n": "INT"})
    make = {"STRING": str, "DOUBLE": float, "DECIMAL(5, 2)": Decimal}.get(key, int)
    rows: list[Row] = [{"id": make(n), "name": f"c{n % 3}", "n": n} for n in range(40)]
    put(store, *rows)
    read, asked = ParquetInput.read, list[list[str]]()

    def recorded(parquet: ParquetInput, columns: list[str], groups: list[int], **how: bool) -> pa.Table:
        asked.append(columns)
        return read(parquet, columns, groups, **how)

    with monkeypatch.context() as patch:
        patch.setattr(ParquetInput, "read", recorded)
        put(store, *[{**one, "n": -1} for one in rows[:30:3]])
        delete(store, rows[31])
    old = [columns for columns in asked if SEQUENCE_NUMBER in columns]
    assert len(old) == 2
    assert all(("id" in columns) != is_exact for columns in old)
    pairs = [(("-U", one), ("+U", {**one, "n": -1})) for one in rows[:30:3]]
    assert changes_of(store, 2) == changes(*[change for pair in pairs for change in pair])
    assert changes_of(store, 3) == changes(("-D", rows[31]))


def test_an_update_changes_only_its_bucket(tmp_path: Path) -> None:
    """One key: one file is added, others stay the same files; the changelog has old and new row."""
    store = keyed_by_day(tmp_path)
    put(store, *[day(number, dt) for number in range(20) for dt in ("x", "y")])
    before = {file.meta.file_name for file in store.plan_scan().files}
    put(store, day(3, "x", "b"))
    after = {file.meta.file_name for file in store.plan_scan().files}
    assert len(after - before) == 1
    assert before < after
    assert changes_of(store, 2) == changes(("-U", day(3, "x")), ("+U", day(3, "x", "b")))


def test_deletes_need_only_the_key(tmp_path: Path) -> None:
    """A delete row with NULLs elsewhere removes the key; an absent key is no change."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    report = delete(store, {"id": 1}, {"id": 77})
    assert (report.deleted, rows_of(store)) == (1, [row(2)])
    assert changes_of(store, 2) == changes(("-D", row(1)))
    assert store.snapshots.get(2).delta_record_count == 0


def test_a_full_refresh_is_the_difference(tmp_path: Path) -> None:
    """Overwriting a keyed table keeps equal rows and says exactly what changed (decision 0002)."""
    store = keyed_by_day(tmp_path)
    put(store, day(1, "x"), day(2, "x"), day(3, "y"))
    report = overwrite(store, day(1, "x"), day(2, "x", "b"), day(4, "z"))
    assert (report.inserted, report.updated, report.deleted, report.unchanged) == (1, 1, 1, 1)
    assert store.snapshots.get(2).commit_kind is CommitKind.APPEND
    assert changes_of(store, 2) == changes(
        ("-U", day(2, "x")), ("+U", day(2, "x", "b")), ("-D", day(3, "y")), ("+I", day(4, "z"))
    )
    assert overwrite(store).deleted == 3
    assert rows_of(store) == []
    assert store.verify() == ()


def test_dynamic_overwrite_touches_only_partitions_in_the_rows(tmp_path: Path) -> None:
    """Rows of partition x replace x, in all its buckets; y stays; no rows change nothing."""
    for name, make in (("keyed", keyed_by_day), ("append", appended)):
        store = make(tmp_path / name)
        put(store, *[day(number, dt) for number in range(8) for dt in ("x", "y")])
        put(store, day(1, "x", "new"), mode=WriteMode.OVERWRITE_PARTITIONS)
        expected = [day(1, "x", "new"), *[day(number, "y") for number in range(8)]]
        assert rows_of(store) == sorted(expected, key=repr)
        newest = store.snapshots.find_latest_id()
        assert put(store, mode=WriteMode.OVERWRITE_PARTITIONS).snapshot_id == newest
        assert store.verify() == ()


def test_static_overwrite_fills_in_and_checks_its_partition(tmp_path: Path) -> None:
    """PARTITION (dt='x'): rows may lack dt; rows of another partition are refused before anything is written."""
    store = keyed_by_day(tmp_path)
    put(store, day(1, "x"), day(2, "x"), day(3, "y"))
    rows = pa.table({"id": pa.array([9], pa.int32()), "v": ["n"]})
    store.write(WriteRequest(rows, mode=WriteMode.OVERWRITE_STATIC, partition={"dt": "x"}))
    assert rows_of(store) == sorted([day(9, "x", "n"), day(3, "y")], key=repr)
    with pytest.raises(FixData, match="TS1620"):
        put(store, day(1, "y"), mode=WriteMode.OVERWRITE_STATIC, partition={"dt": "x"})
    with pytest.raises(FixRequest, match="TS1311"):
        put(store, day(1, "y"), mode=WriteMode.OVERWRITE_STATIC, partition={"v": "x"})
    put(store, mode=WriteMode.OVERWRITE_STATIC, partition={"dt": "x"})
    assert rows_of(store) == [day(3, "y")]


def test_an_append_only_overwrite_is_an_overwrite_snapshot(tmp_path: Path) -> None:
    """All old files go, kind OVERWRITE, and the changes are the multiset difference (decision 0002)."""
    store = appended(tmp_path)
    put(store, day(1, "x"), day(1, "x"), day(2, "x"), day(3, "y"))
    put(store, day(1, "x"), day(4, "x"), mode=WriteMode.OVERWRITE_TABLE)
    assert store.snapshots.get(2).commit_kind is CommitKind.OVERWRITE
    assert rows_of(store) == [day(1, "x"), day(4, "x")]
    assert changes_of(store, 2) == changes(
        ("-D", day(1, "x")), ("-D", day(2, "x")), ("-D", day(3, "y")), ("+I", day(4, "x"))
    )
    assert store.verify() == ()


def test_append_only_rows_are_appended_even_when_equal(tmp_path: Path) -> None:
    """No key: each write adds its rows; upsert means append; deletes by kind are refused."""
    store = appended(tmp_path)
    put(store, day(1, "x"))
    report = put(store, day(1, "x"), day(2, None))
    assert (report.inserted, len(rows_of(store))) == (2, 3)
    assert changes_of(store, 2) == changes(("+I", day(1, "x")), ("+I", day(2, None)))
    with pytest.raises(FixRequest, match="TS1312"):
        delete(store, day(1, "x"))


def test_append_only_with_buckets_counts_on(tmp_path: Path) -> None:
    """bucket=2 with bucket-key: sequence numbers continue per bucket."""
    store = make_table(tmp_path, keys=(), columns={"id": "INT"}, options={"bucket": "2", "bucket-key": "id"})
    for _ in range(2):
        put(store, *[{"id": number} for number in range(10)])
    ends: dict[int, list[tuple[int, int]]] = {}
    for file in store.plan_scan().files:
        span = (file.meta.min_sequence_number, file.meta.max_sequence_number)
        ends.setdefault(file.bucket, []).append(span)
        assert file.total_buckets == 2
    for spans in ends.values():
        first, second = sorted(spans)
        assert second[0] == first[1] + 1


def test_repeated_keys_are_refused_or_the_last_wins(tmp_path: Path) -> None:
    """duplicates of the request replaces the table's option."""
    store = make_table(tmp_path)
    with pytest.raises(FixData, match="TS1601"):
        put(store, row(1, "a"), row(1, "b"))
    assert store.snapshots.list_ids() == ()
    put(store, row(1, "a"), row(1, "b"), duplicates="last")
    assert rows_of(store) == [row(1, "b")]


def test_another_bucket_count_needs_an_overwrite(tmp_path: Path) -> None:
    """A rescale rewrites everything as OVERWRITE; an upsert into the old partition is refused."""
    store = keyed_by_day(tmp_path)
    rows = [day(number, "x") for number in range(30)]
    put(store, *rows)
    wider = replace(store.schema, id=1, options={**store.schema.options, "bucket": "4"})
    with pytest.raises(FixRequest, match="TS1314"):
        store.write(WriteRequest(as_table(rows[:1], wider), new_schema=wider))
    store.write(WriteRequest(as_table(rows, wider), mode=WriteMode.OVERWRITE_TABLE, new_schema=wider))
    assert store.snapshots.get(2).commit_kind is CommitKind.OVERWRITE
    assert rows_of(store) == sorted(rows, key=repr)
    assert {file.total_buckets for file in store.plan_scan().files} == {4}
    put(store, day(5, "x", "b"))
    assert store.verify() == ()
    assert not [path for path in tmp_path.rglob("changelog-*") if _is_unnamed(store, path.name)]


def _is_unnamed(store: TableStore, name: str) -> bool:
    manifests = store.context.manifests
    return not any(
        entry.file.file_name == name
        for snapshot in store.snapshots.list_all()
        for entry in manifests.read_changelog_entries(snapshot)
    )


def test_a_rescale_of_a_table_with_log_is_refused(tmp_path: Path) -> None:
    """The topic has one partition per bucket: TS1314, and the table is as it was."""
    store = keyed_by_day(tmp_path, **{"log.system": "kafka"})
    put(store, day(1, "x"))
    wider = replace(store.schema, id=1, options={**store.schema.options, "bucket": "4"})
    with pytest.raises(FixRequest, match="TS1314"):
        store.write(WriteRequest(as_table([], wider), mode=WriteMode.OVERWRITE_TABLE, new_schema=wider))
    assert rows_of(store) == [day(1, "x")]


def test_keyed_tables_without_vectors_are_not_written(tmp_path: Path) -> None:
    """Merge-on-read tables of other engines are refused by name."""
    store = make_table(tmp_path, options={"deletion-vectors.enabled": "false"})
    with pytest.raises(Unsupported, match="TS1309"):
        put(store, row(1))


def test_bad_rows_leave_nothing_behind(tmp_path: Path) -> None:
    """An unknown column and a NULL key stop the write before a file exists (P7)."""
    store = make_table(tmp_path)
    for rows in (pa.table({"id": [1], "zzz": [1]}), pa.table({"id": pa.array([None], pa.int64())})):
        with pytest.raises(FixData):
            store.write(WriteRequest(rows))
    assert [path.name for path in (tmp_path / "demo.db/t").iterdir()] == ["schema"]


def test_changes_from_elsewhere_are_committed_like_rows(tmp_path: Path) -> None:
    """The distributed path: changes computed by tasks, an overwrite empties buckets without rows."""
    store = keyed_by_day(tmp_path)
    put(store, *[day(number, dt) for number in range(10) for dt in ("x", "y")])
    worker = open_table(tmp_path)

    def tasks(base, *_):  # type: ignore[no-untyped-def]
        state = next(one for one in worker.bucket_states(base) if one.partition == ("x",))
        table, context = worker.context.task_table(worker.schema), worker.context
        kept = FileReader(context.fileio, worker.schema).read_visible(state.files[0]).slice(0, 1)
        (routed,) = route_rows(kept, None, worker.schema)
        return [run_task(plan_bucket(table, state, routed, EVERY_ROW), context.access)]

    report = store.write_changes(tasks, WriteRequest(mode=WriteMode.OVERWRITE_PARTITIONS))
    assert report.deleted == 9
    assert len(rows_of(store)) == 11
    assert store.verify() == ()


def test_rows_computed_from_an_older_snapshot_are_refused(tmp_path: Path) -> None:
    """An UPDATE whose table moved on commits nothing; a fold in between does not matter."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2))
    with pytest.raises(RetryError, match="TS1324"):
        put(store, row(1), computed_from=1)
    store.compact(full=True)
    assert put(store, row(3), computed_from=2).inserted == 1


def test_rows_computed_from_a_snapshot_that_was_taken_back_are_refused(tmp_path: Path) -> None:
    """Rolled back below it, to nothing, or committed anew under its number: TS1324, nothing is committed."""
    store = make_table(tmp_path)
    for number in range(3):
        put(store, row(number))
    seen = store.snapshots.get(3)
    store.rollback(2)
    with pytest.raises(RetryError, match="TS1324"):
        put(store, row(9), computed_from=3)
    assert put(store, row(5), computed_from=2).snapshot_id == 3
    with pytest.raises(RetryError, match="TS1324"):
        put(store, row(9), computed_from=3, computed_from_unique=seen.unique)
    assert (
        put(store, row(6), computed_from=3, computed_from_unique=store.snapshots.get(3).unique).inserted == 1
    )
    with pytest.raises(RetryError, match="TS1324"):
        put(make_table(tmp_path / "other"), row(9), computed_from=1)


def test_a_log_of_inserts_keeps_rows_in_their_table(tmp_path: Path) -> None:
    """A table without a key whose log is plain json: what would take a row out is TS1329 and leaves no file; what
    takes none out is written; with log.ignore-delete rows may go.
    """
    log = {"log.system": "kafka", "kafka.topic": "t", "log.format": "json"}
    store = make_table(tmp_path / "a", keys=(), options=log)
    put(store, row(1), row(2))
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    for rows in ([row(1)], [row(3)], []):
        with pytest.raises(FixRequest, match="TS1329"):
            put(store, *rows, mode=WriteMode.OVERWRITE_TABLE)
    with pytest.raises(FixRequest, match="TS1329"):
        put(store, row(1, "other"), mode=WriteMode.REPLACE, replaces=SameKeys(("id",)))
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before
    put(store, row(1), mode=WriteMode.REPLACE, replaces=SameKeys(("id",)))
    put(store, row(3))
    assert len(rows_of(store)) == 3
    other = make_table(tmp_path / "b", keys=(), options={**log, "log.ignore-delete": "true"})
    put(other, row(1))
    put(other, row(3), mode=WriteMode.OVERWRITE_TABLE)
    assert len(rows_of(other)) == 1
