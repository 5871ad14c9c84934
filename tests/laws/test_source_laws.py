"""Any history, any mode and limits, a query that dies anywhere: Spark's sink gets each change exactly once."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.datasource import slices as slices_module
from tablestore_engine.datasource.admission import Admission, Limits, Portion
from tablestore_engine.errors import NotFound
from tablestore_engine.store import difference
from tests.doses import cases, examples
from tests.laws.test_stream_laws import SHAPES, STEPS, VALUES, run_step
from tests.unit.datasource.query_world import POINTS, Checkpoint, Crash, reader_of, run_query
from tests.unit.store.expiry_world import newest
from tests.unit.store.table_world import Row, make_table, put
from tests.unit.stream.stream_world import fold, reader, state_of

OF_MAKE_TEST = {"keyed, partitioned", "keyed, written by others", "no key"}
MODES = {"latest-full": {}, "earliest": {}, "latest": {}, "from-snapshot": {"scan.snapshot-id": "1"}}
RUNS = st.lists(
    st.tuples(STEPS, st.sampled_from(POINTS), st.integers(0, 2), st.none() | st.integers(1, 2)), max_size=4
)
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "maxSnapshotsPerTrigger": st.sampled_from("13"),
        "maxRowsPerTrigger": st.sampled_from("15"),
        "maxBytesPerTrigger": st.sampled_from(("1", "9000")),
    },
)


@pytest.mark.parametrize(
    "shape", [pytest.param(one, marks=() if one in OF_MAKE_TEST else pytest.mark.nightly) for one in SHAPES]
)
@given(first=STEPS, rows=VALUES, mode=st.sampled_from(sorted(MODES)), limits=LIMITS, runs=RUNS)
@settings(max_examples=examples(3, 100))
def test_each_change_comes_once_whatever_dies(
    shape: str, first: Any, rows: Any, mode: str, limits: dict[str, str], runs: Any
) -> None:
    """What the sink has, batch after batch, folds to the table; a consumer keeps what the next batch needs."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(difference, "PASS_ROWS", 3)
        patch.setattr(slices_module, "SLICE_ROWS", 3)
        patch.setattr(slices_module, "SLICE_BYTES", 2_000)
        root, checkpoint = Path(folder), Checkpoint()
        store = make_table(root, **SHAPES[shape])
        for what, values in first:
            run_step(store, what, values)
        begun = store.snapshots.find_latest_id() or 0
        options = {"scan.mode": mode, **MODES[mode], **limits, "consumer-id": "q"}
        with contextlib.suppress(Crash):
            run_query(reader_of(root, **options), checkpoint, crash_at=None)
        for steps, point, after, keep in runs:
            for what, values in steps:
                run_step(store, what, values)
            if keep is not None and store.latest() is not None:
                store.expire(newest(keep))
            with contextlib.suppress(Crash):
                run_query(reader_of(root, **options), checkpoint, crash_at=point, after=after)
        run_query(reader_of(root, **options), checkpoint)
        last = store.snapshots.find_latest_id() or 0
        if mode == "latest" and begun:
            try:
                before = state_of(store, begun)
            except NotFound:
                return
        else:
            before = state_of(store, 0)
        assert fold(before, checkpoint.rows, store.schema.primary_keys) == state_of(store, last)


@pytest.mark.parametrize("point", cases(POINTS, 3))
@given(first=STEPS, second=STEPS, mode=st.sampled_from(("latest-full", "earliest", "latest")))
@settings(max_examples=examples(3, 50))
def test_a_death_in_the_first_batch_moves_no_beginning(
    point: str | None, first: Any, second: Any, mode: str
) -> None:
    """The table moves on between the death and the next start, and the rows are told once all the same."""
    with tempfile.TemporaryDirectory() as folder:
        root, checkpoint = Path(folder), Checkpoint()
        store = make_table(root)
        for what, values in first:
            run_step(store, what, values)
        begun = store.snapshots.find_latest_id() or 0
        states = {number: state_of(store, number) for number in (0, *store.snapshots.list_ids())}
        with contextlib.suppress(Crash):
            run_query(reader_of(root, **{"scan.mode": mode}), checkpoint, crash_at=point)
        if not checkpoint.offsets:
            begun = 0 if mode != "latest" else begun
        for what, values in second:
            run_step(store, what, values)
        if mode == "latest" and not checkpoint.offsets:
            return  # it had not begun
        run_query(reader_of(root, **{"scan.mode": mode}), checkpoint)
        before = states[begun] if mode == "latest" else states[0]
        assert fold(before, checkpoint.rows, store.schema.primary_keys) == state_of(
            store, store.snapshots.find_latest_id() or 0
        )


@pytest.mark.parametrize("shape", sorted(OF_MAKE_TEST))
@given(
    first=STEPS,
    rows=VALUES,
    later=STEPS,
    mode=st.sampled_from(("latest-full", "earliest")),
    cut=st.integers(1, 3),
)
@settings(max_examples=examples(3, 60))
def test_a_query_that_takes_a_consumer_over_resumes_within_its_snapshot(
    shape: str, first: Any, rows: Any, later: Any, mode: str, cut: int
) -> None:
    """A reader in Python stops after `cut` rows, mostly in the middle of a snapshot; a query with its consumer gets
    the other rows: both together fold to the table.
    """
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices_module, "SLICE_BYTES", 2_000)
        root, checkpoint, read = Path(folder), Checkpoint(), list[Row]()
        store = make_table(root, **SHAPES[shape])
        for what, values in (*first, ("put", rows)):
            run_step(store, what, values)
        stream = reader(store, mode, batch_rows=1, consumer_id="q")
        for batch in stream:
            read += batch.to_pylist()
            if len(read) == cut:
                break
        stream.commit()
        for what, values in later:
            run_step(store, what, values)
        run_query(reader_of(root, **{"scan.mode": mode, "consumer-id": "q"}), checkpoint)
        last = store.snapshots.find_latest_id() or 0
        assert fold(state_of(store, 0), [*read, *checkpoint.rows], store.schema.primary_keys) == state_of(
            store, last
        )


@given(
    portions=st.lists(st.builds(Portion, st.none() | st.integers(0, 9), st.integers(0, 9)), max_size=12),
    limits=st.builds(Limits, *[st.none() | st.integers(1, 12)] * 3),
)
def test_a_batch_keeps_its_limits_and_never_stands(portions: list[Portion], limits: Limits) -> None:
    """More than one snapshot with rows only within every limit; the first is always taken, empty ones are free."""
    taken, count = Admission(limits), 0
    for portion in portions:
        more = taken.take(portion)
        if more is None:
            break
        taken, count = more, count + (not portion.is_empty)
    assert count >= min(1, sum(not one.is_empty for one in portions))
    if count > 1:
        assert limits.snapshots is None or count <= limits.snapshots
        assert limits.rows is None or taken.rows <= limits.rows
        assert limits.bytes is None or taken.bytes <= limits.bytes


def test_the_oracle_sees_a_row_that_comes_twice(tmp_path: Path) -> None:
    """The fold of these tests refuses a change that is told again."""
    store = make_table(tmp_path)
    put(store, {"id": 1, "name": "a", "n": 0})
    checkpoint = Checkpoint()
    run_query(reader_of(tmp_path), checkpoint)
    with pytest.raises(AssertionError):
        fold(state_of(store, 0), checkpoint.rows * 2, ("id",))
