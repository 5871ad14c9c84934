"""Requests to an object store, in all and in sequence, of what users do: counted, never timed (decision 0065)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.fileio.object_cache import CachedFileIO
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.store.orphan_files.clean_orphans import OrphanRequest
from tests.doubles.memory_store import MemoryFileIO
from tests.doubles.request_counts import CountingFileIO
from tests.unit.store.table_world import grow

NAME = "demo.t"
TABLE = WriteSpec(TableSpec(primary_key=("id",)))
Open = Callable[[], tuple[Engine, CountingFileIO]]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Engines on one warehouse, each as a new process on an object store would be, with its counter."""
    objects = MemoryFileIO(str(tmp_path), SYSTEM.now_ms)

    def make() -> tuple[Engine, CountingFileIO]:
        counter = CountingFileIO(objects)
        store = CachedFileIO(counter)
        monkeypatch.setattr(
            "tablestore_engine.warehouse.warehouse.open_root", lambda *_: (str(tmp_path), store)
        )
        return Engine(str(tmp_path)), counter

    return make


def rows(first: int, value: str) -> pa.Table:
    """A hundred rows with keys from `first` on."""
    return pa.table({"id": range(first, first + 100), "value": [value] * 100})


def with_history(opened: Open, snapshots: int) -> Engine:
    """10,000 rows, and commits on them up to so many snapshots; the process has upserted once."""
    engine, _ = opened()
    engine.write(NAME, pa.table({"id": range(10_000), "value": ["a"] * 10_000}), TABLE)
    if snapshots > 1:
        grow(engine.table(NAME).store, snapshots)
    return engine


@pytest.mark.parametrize("snapshots", [1, 300])
def test_upsert_of_a_hundred_rows_makes_few_requests(opened: Open, snapshots: int) -> None:
    """At most 10 in sequence and 60 in all, whatever the history; exactly as many as decision 0065 says."""
    with_history(opened, snapshots)
    engine, counter = opened()
    engine.write(NAME, rows(9_900, "b"), TABLE)
    counter.restart()
    report = engine.write(NAME, rows(9_950, "c"), TABLE)
    assert (report.updated, report.inserted) == (50, 50)
    assert (counter.depth, counter.total) == (9, 32), counter.steps()


@pytest.mark.parametrize("snapshots", [1, 300])
def test_first_upsert_of_a_process_reads_what_it_lacks_together(opened: Open, snapshots: int) -> None:
    """Lists, manifests and the ends of files come besides, and the first look of expiry."""
    with_history(opened, snapshots)
    engine, counter = opened()
    engine.write(NAME, rows(9_950, "c"), TABLE)
    assert counter.depth <= 16, counter.steps()
    assert counter.total <= 60, counter.steps()


def test_rows_that_are_new_alone_need_no_copy(opened: Open) -> None:
    """The changelog of inserts is written beside their run: a copy by the store would have to wait for the run."""
    with_history(opened, 1)
    engine, counter = opened()
    engine.write(NAME, rows(20_000, "b"), TABLE)
    counter.restart()
    assert engine.write(NAME, rows(30_000, "c"), TABLE).inserted == 100
    assert counter.by_method()["COPY"] == 0
    assert counter.depth <= 9, counter.steps()


def test_newest_snapshots_are_read_without_the_older_ones(opened: Open) -> None:
    """Of 300 snapshots the newest three, the oldest one that ends the listing, and no other."""
    with_history(opened, 300)
    engine, counter = opened()
    table = engine.table(NAME)
    counter.restart()
    assert [one.id for one in table.snapshots(last=3)] == [298, 299, 300]
    assert (counter.depth, counter.total) == (4, 7), counter.steps()
    assert len(table.snapshots()) == 300
    assert table.snapshots(last=0) == ()


@pytest.mark.parametrize("snapshots", [1, 300])
def test_opening_a_table_takes_two_round_trips(opened: Open, snapshots: int) -> None:
    """Identity, schema and newest snapshot of a table that this process has not seen."""
    with_history(opened, snapshots)
    engine, counter = opened()
    seen = engine._warehouse.stores.find_seen(Identifier.parse(NAME))
    assert seen is not None
    assert seen.seen is not None
    assert seen.seen.snapshot is not None
    assert seen.seen.snapshot.id == snapshots
    assert (counter.depth, counter.total) == (2, 6), counter.steps()


def test_facts_of_a_table_are_of_one_look_at_it(opened: Open) -> None:
    """The newest snapshot and schema are looked up once, then the manifests are read: no state mixed from several."""
    with_history(opened, 3)
    engine, _ = opened()
    table = engine.table(NAME)
    _, counter = opened()
    table = replace(table, store=replace(table.store, fileio=CachedFileIO(counter)))
    facts = table.facts()
    assert (facts.snapshot_id, facts.primary_key, facts.buckets) == (3, ("id",), 1)
    hints = [one for one in counter.requests if one.path.endswith("/LATEST")]
    assert len(hints) == 1, counter.steps()
    assert (counter.depth, counter.by_method()["LIST"]) == (4, 1), counter.steps()


def test_a_scan_of_many_files_is_read_together(opened: Open) -> None:
    """Look up, open, lists, manifests with vectors, files: the depth does not grow with the number of files."""
    with_history(opened, 1)
    depths = []
    for number in range(4):
        writer, _ = opened()
        writer.write(NAME, rows(9_950 + number, "b"), TABLE)
        engine, counter = opened()
        assert engine.table(NAME).scan().to_arrow().num_rows == 10_050 + number
        depths.append(counter.depth)
    assert depths == [7] * 4


def test_a_commit_with_nothing_due_for_expiry_asks_nothing_behind_it(opened: Open) -> None:
    """After one look of the process expiry knows when the next one can find something."""
    with_history(opened, 1)
    engine, counter = opened()
    engine.write(NAME, rows(0, "b"), TABLE)
    counter.restart()
    engine.write(NAME, rows(50, "c"), TABLE)
    last = [one for one in counter.requests if one.step == counter.depth]
    assert {one.path.rpartition("/")[2] for one in last} >= {"LATEST"}


def test_expiry_deletes_files_in_bulk(opened: Open) -> None:
    """Data, changelogs and metadata of many snapshots go with a few requests; snapshot files one by one, in order."""
    keeps_all = {"tablestore.expire-grace": "0 ms", "tablestore.expire-on-commit": "false"}
    engine, counter = opened()
    for number in range(12):
        engine.write(
            NAME, rows(number * 50, "b"), WriteSpec(TableSpec(primary_key=("id",), options=keeps_all))
        )
    counter.restart()
    report = engine.table(NAME).expire(keep=1)
    assert report.files > 60
    methods = counter.by_method()
    assert methods["POST"] <= 4, counter.steps()
    gone = [one.path.rpartition("/")[2] for one in counter.requests if one.method == "DELETE"]
    assert gone == [f"snapshot-{number}" for number in range(report.first, report.end)]
    assert engine.table(NAME).verify() == ()


def test_orphan_files_are_deleted_in_bulk(opened: Open) -> None:
    """A request for each folder, not for each file."""
    engine, counter = opened()
    engine.write(NAME, rows(0, "b"), TABLE)
    store = engine.table(NAME).store
    for number in range(40):
        name = f"manifest-0a0b0c0d-1111-4222-8333-4444555566{number:02}"
        counter.inner.write(store.context.layout.manifest_path(name), b"left")
    counter.restart()
    report = store.orphans(OrphanRequest(grace_ms=0, delete=True))
    assert len(report.found) == 40
    methods = counter.by_method()
    assert methods["POST"] == 1, counter.steps()
    assert methods["DELETE"] == 2, (
        counter.steps()
    )  # the notice, and the object that told the time of the store


def test_verify_reads_the_store_and_not_what_is_remembered(opened: Open) -> None:
    """A manifest that the process wrote, and that is damaged in the store since, is found."""
    engine, counter = opened()
    engine.write(NAME, rows(0, "b"), TABLE)
    store = engine.table(NAME).store
    assert store.verify() == ()
    listed = [one.path for one in counter.inner.list(store.context.layout.manifest_dir)]
    damaged = next(path for path in listed if "/manifest-list-" in path)
    whole = counter.inner.read(damaged)
    counter.inner.replace(damaged, whole[:-1] + bytes([whole[-1] ^ 1]))
    assert engine.table(NAME).scan().to_arrow().num_rows == 100
    assert any("TS1160" in problem for problem in store.verify())


def test_verify_fetches_each_file_once_and_snapshots_together(opened: Open) -> None:
    """A further snapshot costs its own new files, and hardly any round trip."""
    counted = []
    engine, _ = opened()
    for number in range(24):
        engine.write(NAME, rows(number * 7, "b"), TABLE)
        if number in (11, 23):
            new, counter = opened()
            assert new.table(NAME).verify() == ()
            data = [
                one.path for one in counter.requests if one.method == "GET" and one.path.endswith(".parquet")
            ]
            assert len(data) == len(set(data))
            counted.append((counter.total, counter.depth))
    (few, short), (many, long) = counted
    assert many - few <= 12 * 12, counted
    assert long - short <= 8, counted


def test_dropping_a_table_lists_its_folders_together(opened: Open) -> None:
    """The depth does not grow with the number of partitions, but for each 16 of them."""
    depths = []
    for days in (2, 14):
        engine, counter = opened()
        table = WriteSpec(TableSpec(primary_key=("id", "day"), partition_by=("day",)))
        engine.write(NAME, pa.table({"id": range(100), "day": [n % days for n in range(100)]}), table)
        counter.restart()
        engine.drop_table(NAME)
        depths.append(counter.depth)
        assert counter.by_method()["LIST"] >= 2 * days
    assert depths[0] == depths[1], counter.steps()


def partitioned(opened: Open, days: int) -> None:
    """Rows of so many partitions, all of them written three times: each has a file whose rows are all hidden."""
    engine, _ = opened()
    spec = WriteSpec(TableSpec(primary_key=("id", "day"), partition_by=("day",)))
    for value in "abc":
        rows = {"id": range(3 * days), "day": [n % days for n in range(3 * days)], "v": [value] * 3 * days}
        engine.write(NAME, pa.table(rows), spec)


@pytest.mark.parametrize("days", [4, 40])
def test_a_scan_with_a_limit_opens_the_files_that_it_needs(opened: Open, days: int) -> None:
    """Of many partitions the first two are read: their vectors, and the files that have visible rows."""
    partitioned(opened, days)
    engine, counter = opened()
    scan = engine.table(NAME).scan(limit=5)
    plan = scan.plan_needed()
    assert plan.visible_rows + plan.rows_behind == 3 * days
    assert scan.to_arrow().equals(engine.table(NAME).scan().to_arrow().slice(0, 5))
    engine, counter = opened()
    rows = engine.table(NAME).scan(limit=5).to_arrow()
    assert rows["v"].to_pylist() == ["c"] * 5
    opened_files = [sum(part in one.path for one in counter.requests) for part in ("/data-", "/index/")]
    assert opened_files == [2, 2], counter.steps()


def test_a_limited_scan_where_vectors_have_no_counts_plans_all_files(opened: Open) -> None:
    """Another engine may leave the counts out: nothing is guessed, and the rows are the same."""
    partitioned(opened, 4)
    engine, _ = opened()
    store = engine.table(NAME).store
    snapshot, manifests = store.latest(), store.context.manifests
    assert snapshot is not None
    assert snapshot.index_manifest is not None
    uncounted = tuple(
        replace(one, dv_ranges=tuple(replace(part, cardinality=None) for part in one.dv_ranges))
        for one in manifests.read_index(snapshot.index_manifest)
    )
    fresh, _ = opened()
    other = fresh.table(NAME).store
    other.context.manifests.memory.put(snapshot.index_manifest, uncounted, 1)
    plan = other.plan_scan(rows_max=5)
    assert (plan.visible_rows, plan.rows_behind) == (12, 0)


def test_a_scan_reads_no_file_whose_rows_are_all_hidden(opened: Open) -> None:
    """Such files stay until a compaction; a full read and one with a filter leave them out."""
    partitioned(opened, 4)
    for where in (None, "id < 100"):
        engine, counter = opened()
        assert engine.table(NAME).scan(filter=where).to_arrow()["v"].to_pylist() == ["c"] * 12
        data = [one for one in counter.requests if "/data-" in one.path]
        assert len(data) == 4, counter.steps()
