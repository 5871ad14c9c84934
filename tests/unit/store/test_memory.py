"""Work on a bucket holds a step of its rows, not the bucket: Arrow's own account of what was allocated at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.lsm.compaction_strategy import pick_full
from tablestore_engine.store import difference
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.files import row_budget
from tablestore_engine.store.files.parquet_input import portions
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.scan_rows import read_batches
from tablestore_engine.store.tasks.bucket_task import BucketTask, CompactRuns
from tablestore_engine.store.verify.key_facts import read_key_facts
from tablestore_engine.store.verify.key_history import KeyWindow, count_repeats
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.unit.store.bucket_world import Row, World, make_schema
from tests.unit.store.table_world import make_table, open_table
from tests.unit.stream.stream_world import reader

ROWS, STEP, TEXT = 60_000, 2_000, 100
SHARE = 2.5  # of what everything at once takes: some steps, and the 8 k rows that a new file is sampled by
Work = Callable[[World], object]
_POOLS: list[pa.MemoryPool] = []  # remembered keys may lie in their memory: a pool outlives the test


def _rows(keys: Sequence[int], letter: str) -> list[Row]:
    return [{"id": key, "v": f"{key:08}" + letter * TEXT} for key in keys]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A bucket of ROWS rows in two runs that interleave."""
    options = {"parquet.row-group-rows": "1000"}
    world = World(tmp_path_factory.mktemp("t"), make_schema({"id": "BIGINT", "v": "STRING"}, options=options))
    world.upsert(_rows(range(0, ROWS, 2), "a"))
    world.upsert(_rows(range(1, ROWS, 2), "b"))
    return world


@pytest.fixture
def metered() -> Iterator[Callable[[Callable[[], object]], int]]:
    """Runs something; gives the most bytes that Arrow held for it at any moment."""
    usual = pa.default_memory_pool()

    def peak(work: Callable[[], object]) -> int:
        pool = pa.proxy_memory_pool(usual)
        _POOLS.append(pool)
        pa.set_memory_pool(pool)
        try:
            work()
        finally:
            pa.set_memory_pool(usual)
        return int(pool.max_memory())

    yield peak
    pa.set_memory_pool(usual)


def _scan(world: World) -> int:
    plan = ScanPlan(None, world.schema, world.state.files)
    return sum(batch.num_rows for batch in read_batches(world.access.fileio, plan))


def _fold_task(world: World) -> BucketTask:
    unit = pick_full(world.levels, target_bytes=world.task_table.traits.target_bytes)
    assert unit is not None
    return CompactRuns(world.task_table, world.state, unit)


def _doing(make: Callable[[World], BucketTask]) -> Callable[[World], Work]:
    """The task is made beforehand: rows that come along are the caller's."""

    def prepared(world: World) -> Work:
        task = make(world)
        return lambda same: same.run(task)

    return prepared


WORK: dict[str, Callable[[World], Work]] = {
    "scan": lambda _: _scan,
    "fold": _doing(_fold_task),
    "upsert": _doing(lambda world: world.plan(_rows(range(ROWS), "c"))),
    "overwrite": _doing(lambda world: world.plan(_rows(range(10), "c"), replace=True)),
}


@pytest.mark.parametrize("name", WORK)
def test_work_in_steps_holds_a_few_steps(
    filled: World,
    metered: Callable[[Callable[[], object]], int],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """With a small step the peak is a part of what the same work takes in one step."""
    work = WORK[name](filled)
    whole = metered(lambda: work(filled))
    assert whole > ROWS * TEXT // 3, "the meter sees the rows"
    monkeypatch.setattr(row_budget, "STEP_ROWS", STEP)
    in_steps = metered(lambda: work(filled))
    assert in_steps < whole / SHARE, f"{in_steps:,} bytes of {whole:,}"


def test_changes_come_in_steps(
    tmp_path: Path, metered: Callable[[Callable[[], object]], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is published and shown of a snapshot is never all of its rows at once, and all of them in their order."""
    store = make_table(
        tmp_path, columns={"id": "INT", "v": "STRING"}, options={"parquet.row-group-rows": "1000"}
    )
    rows = _rows(range(ROWS), "a")
    store.write(WriteRequest(pa.Table.from_pylist(rows, schema=store.schema.arrow_schema())))
    store = open_table(tmp_path)
    newest = store.latest()
    assert newest is not None

    def read() -> list[int]:
        return [
            one
            for batch in ChangelogReader(store.context).read(newest)
            for one in batch.rows.column("id").to_pylist()
        ]

    whole = metered(read)
    monkeypatch.setattr(row_budget, "STEP_ROWS", STEP)
    found: list[int] = []
    assert metered(lambda: found.extend(read())) < whole / SHARE
    assert found == list(range(ROWS))


@pytest.mark.parametrize("mode", ["earliest", "latest-full"])
def test_a_reader_holds_a_few_steps(
    tmp_path: Path, metered: Callable[[Callable[[], object]], int], monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Of a snapshot's rows, and of its changes, however many there are."""
    store = make_table(
        tmp_path, columns={"id": "INT", "v": "STRING"}, options={"parquet.row-group-rows": "1000"}
    )
    rows = _rows(range(ROWS), "a")
    store.write(WriteRequest(pa.Table.from_pylist(rows, schema=store.schema.arrow_schema())))

    def read() -> int:
        return sum(batch.num_rows for batch in reader(open_table(tmp_path), mode))

    whole = metered(read)
    monkeypatch.setattr(row_budget, "STEP_ROWS", STEP)
    found: list[int] = []
    assert metered(lambda: found.append(read())) < whole / SHARE
    assert found == [ROWS]


def test_a_difference_holds_a_pass(
    tmp_path: Path, metered: Callable[[Callable[[], object]], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An overwrite without a changelog: never all rows of both states at once."""
    store = make_table(
        tmp_path, keys=(), columns={"id": "INT", "v": "STRING"}, options={"parquet.row-group-rows": "1000"}
    )
    for letter in "ab":
        rows = pa.Table.from_pylist(_rows(range(ROWS // 2), letter), schema=store.schema.arrow_schema())
        store.write(WriteRequest(rows, mode=WriteMode.OVERWRITE_TABLE))

    def read() -> int:
        stream = reader(open_table(tmp_path), "from-snapshot", snapshot_id=2)
        return sum(batch.num_rows for batch in stream)

    whole = metered(read)
    monkeypatch.setattr(row_budget, "STEP_ROWS", STEP)
    monkeypatch.setattr(difference, "PASS_ROWS", 2 * STEP)
    found: list[int] = []
    assert metered(lambda: found.append(read())) < whole / SHARE
    assert found == [ROWS]


def test_verify_looks_at_keys_in_steps(
    filled: World, metered: Callable[[Callable[[], object]], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Order, numbers and repeats of keys are found without all keys at once."""
    files, reader = filled.state.files, filled.files.reader
    window = KeyWindow(0, 1)
    for file in files:
        window.times(file).show(0, file.deleted)

    def look() -> None:
        assert all(not list(read_key_facts(reader, file).problems(file)) for file in files)
        assert count_repeats(reader, window, {}) == {}

    whole = metered(look)
    monkeypatch.setattr(row_budget, "STEP_ROWS", STEP)
    assert metered(look) < whole / 2


def test_row_groups_are_read_together_up_to_a_step() -> None:
    """Every group is in one portion, in order; a portion has its rows by its last group, a larger group is alone."""
    assert portions([], 10) == []
    assert portions([4, 4, 4, 4], 8) == [range(2), range(2, 4)]
    assert portions([4, 4, 4], 9) == [range(3)]
    assert portions([4, 30, 4], 8) == [range(1), range(1, 2), range(2, 3)]


def test_a_large_row_group_is_read_in_parts(tmp_path: Path) -> None:
    """A file that another writer made of one group gives the rows of the whole, a step at a time."""
    world = World(
        tmp_path, make_schema({"id": "BIGINT", "v": "STRING"}, options={"parquet.row-group-rows": "5000"})
    )
    world.upsert(_rows(range(3_000), "a"))
    (file,) = world.state.files
    blocks = list(world.files.reader.read_blocks(file, rows_max=700))
    assert [block.first for block in blocks] == [0, 700, 1400, 2100, 2800]
    assert pa.concat_tables([block.rows for block in blocks]).equals(world.files.reader.read(file))
