"""Any history, any mode, stopped and gone on with anywhere: what a reader gets folds to the table at every snapshot."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.store import difference
from tablestore_engine.store.rows.row_filter import SameKeys
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.stream.table_stream import TableStream
from tests.doses import cases, examples
from tests.unit.store.expiry_world import newest
from tests.unit.store.table_world import Row, delete, make_table, open_table, overwrite, put, row
from tests.unit.store.test_changelog import foreign_level_zero, foreign_overwrite
from tests.unit.stream.stream_world import ID, State, fold, read_in_pieces, reader, state_of

SHAPES: dict[str, dict[str, Any]] = {
    "keyed": {"options": {"bucket": "2", "num-levels": "4"}},
    "keyed, partitioned": {"partitions": ("n",), "keys": ("id", "n")},
    "keyed, written by others": {},
    "no key": {"keys": ()},
    "no key, vectors": {"keys": (), "options": {"deletion-vectors.enabled": "true"}},
    "no key, partitioned": {
        "keys": (),
        "partitions": ("n",),
        "options": {"deletion-vectors.enabled": "true"},
    },
}
VALUES = st.lists(
    st.builds(row, st.integers(0, 5), st.sampled_from("abc"), st.integers(0, 1)),
    min_size=1,
    max_size=4,
    unique_by=lambda one: (one["id"], one["n"]),
)
WHATS = (
    "put", "put", "delete", "refresh", "same", "compact", "rescale", "restore", "theirs", "their refresh",
)  # fmt: skip
STEPS = st.lists(st.tuples(st.sampled_from(WHATS), VALUES), min_size=1, max_size=7)
MODES = ("latest-full", "compacted-full", "earliest", "from-snapshot", "from-snapshot-full", "latest")
CUTS = st.lists(st.integers(1, 4), max_size=5)


def run_step(store: TableStore, what: str, rows: list[Row]) -> None:
    """One commit, or none where it changes nothing; keyed rows of one id in one partition are one row."""
    keyed = store.schema.is_keyed
    if keyed and store.schema.primary_keys == ("id",):
        rows = list({one["id"]: one for one in rows}.values())
    others_may_write = keyed and not store.schema.partition_keys and store.schema.bucket_count == 1
    if what.startswith("their") and not others_may_write:
        what = "put"
    if what == "put" or (what == "delete" and not keyed):
        put(store, *rows)
    elif what == "delete":
        delete(store, *({key: one[key] for key in store.schema.primary_keys} for one in rows))
    elif what == "refresh":
        overwrite(store, *rows)
    elif what == "same":
        if keyed:
            put(store, *rows)
        else:
            put(store, *rows, mode=WriteMode.REPLACE, replaces=SameKeys(("id",)))
    elif what == "theirs":
        foreign_level_zero(store, rows, [0] * len(rows))
    elif what == "their refresh":
        foreign_overwrite(store, rows)
    elif what == "rescale" and store.schema.bucket_count > 0:
        store.rescale(store.schema.bucket_count % 3 + 1)
    elif what == "restore" and store.latest() is not None:
        with contextlib.suppress(FixRequest):  # rows of then may lie in other buckets (TS1343)
            store.restore(store.snapshots.list_all()[0])
    else:
        store.compact(full=True)


@pytest.mark.parametrize("shape", cases(SHAPES, 3))
@given(
    steps=STEPS,
    mode=st.sampled_from(MODES),
    at=st.integers(1, 9),
    later=STEPS,
    cuts=CUTS,
    keep=st.none() | st.integers(1, 3),
)
@settings(max_examples=examples(4, 100))
def test_what_a_reader_gets_folds_to_the_table(
    shape: str, steps: Any, mode: str, at: int, later: Any, cuts: list[int], keep: int | None
) -> None:
    """On top of the state that the mode leaves out, at each snapshot; what has expired before it began is refused."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(difference, "PASS_ROWS", 3)
        root = Path(folder)
        store = make_table(root, **SHAPES[shape])
        for what, rows in steps:
            run_step(store, what, rows)
        if keep is not None and store.latest() is not None:
            store.expire(newest(keep))
        begin, before = begin_reader(store, mode, at)
        if begin is None:
            return
        first = begin(store)
        for what, rows in later:
            run_step(store, what, rows)
        last = store.snapshots.find_latest_id() or 0
        states = {number: state_of(store, number) for number in (0, *store.snapshots.list_ids())}
        at_start, position = before, first.position
        stream, rows = read_in_pieces(
            root, lambda fresh: reader(fresh, position=position, until=last, batch_rows=2), cuts
        )
        check(states, at_start, first, rows, last, store.schema.primary_keys)
        assert reader(open_table(root), position=stream.position).position == stream.position


def begin_reader(
    store: TableStore, mode: str, at: int
) -> tuple[Callable[[TableStore], TableStream] | None, State]:
    """How to begin, and the state that the mode leaves out; None where it is refused, as it has to be."""
    ids = store.snapshots.list_ids()
    words: dict[str, Any] = {}
    if mode.startswith("from-snapshot"):
        number = min(at, ids[-1] if ids else 1)
        words["snapshot_id"] = number
        if ids and number < ids[0]:
            with pytest.raises(NotFound, match="TS1333"):
                reader(store, mode, **words)
            return None, state_of(store, 0)
        if not ids and mode == "from-snapshot-full":
            return None, state_of(store, 0)
        if mode == "from-snapshot":
            if number > 1 and number == (ids or (0,))[0]:
                return None, state_of(store, 0)  # allowed, but nobody can tell the state before any more
            return (lambda fresh: reader(fresh, mode, **words)), state_of(store, number - 1)
    left_out = state_of(store, ids[-1]) if mode == "latest" and ids else state_of(store, 0)
    return (lambda fresh: reader(fresh, mode, **words)), left_out


def check(
    states: dict[int, State],
    state: State,
    first: TableStream,
    rows: list[Row],
    last: int,
    keys: tuple[str, ...],
) -> None:
    """Snapshot after snapshot."""
    seen = [int(str(one[ID])) for one in rows]
    assert seen == sorted(seen)
    for number in range(first.snapshot_id, last + 1):
        state = fold(state, [one for one in rows if one[ID] == number], keys)
        assert state == states[number], f"snapshot {number}"
