"""Readers of a log: whatever lies in it, cut anywhere and gone on with, folds to the table at each boundary."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.log.followed_log import LogBoundary
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.rows.routing import route_rows
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.stream import log_changes
from tests.doses import examples
from tests.unit.store.table_world import Row, as_table, delete, make_table, overwrite, put, row
from tests.unit.stream.log_world import MemoryLog, keys_of, log_reader
from tests.unit.stream.stream_world import State, fold, rows_of_batches, state_of

KEYS = 6


class History:
    """Writes of a table and what its log has of them: at once, twice, never committed, not yet."""

    def __init__(self, root: Path, rng: random.Random, *, is_eventual: bool) -> None:
        self.rng, self.buckets = rng, rng.choice([1, 2])
        self.store: TableStore = make_table(root, options={"bucket": str(self.buckets), "num-levels": "3"})
        self.log = MemoryLog(self.store, is_eventual=is_eventual, partitions=self.buckets)
        self.unconfirmed: dict[int, set[int]] = {}

    def step(self) -> None:
        """One thing happens."""
        act = self.rng.choice([self.write, self.write, self.write, self.publish, self.fold])
        act()

    def _rows(self) -> list[Row]:
        numbers = self.rng.sample(range(KEYS), self.rng.randint(1, 3))
        return [row(number, self.rng.choice("abc")) for number in numbers]

    def write(self) -> None:
        """An upsert, a delete or an overwrite; an eventual log has its rows before, from attempts that fail as well."""
        rows = self._rows()
        if self.log.is_eventual and self.rng.random() < 0.3:
            self._fails(rows)
        kind = self.rng.random()
        if kind < 0.6:
            put(self.store, *rows)
        elif kind < 0.85:
            delete(self.store, *rows)
        else:
            overwrite(self.store, *rows)
        if self.log.is_eventual and self.rng.random() < 0.5:
            self._doubled()

    def _fails(self, rows: list[Row]) -> None:
        """Rows of an attempt that never commits."""
        kind = self.rng.choice([RowKind.INSERT, RowKind.DELETE])
        kinds = np.full(len(rows), int(kind), np.int8)
        for one in route_rows(as_table(rows, self.store.schema), kinds, self.store.schema):
            sent = one.rows.append_column(
                ROW_KIND_COLUMN, pa.array(np.full(one.rows.num_rows, int(kind), np.int8))
            )
            self.log.send(sent, self.store.schema, one.bucket)
            self.unconfirmed.setdefault(one.bucket, set()).update(one.rows.column("id").to_pylist())

    def _doubled(self) -> None:
        """The rows of the newest snapshot, before the publisher sends them."""
        snapshot = self.store.latest()
        for batch in () if snapshot is None else ChangelogReader(self.store.context).read(snapshot):
            self.log.send(batch.rows, self.store.schema, batch.bucket)

    def fold(self) -> None:
        """A compaction."""
        self.store.compact(full=True)

    def publish(self) -> None:
        """What is pending, then the true values of the keys of unconfirmed records. Only the last boundary of an
        eventual log is exact: rows of later snapshots may lie before the others.
        """
        before = len(self.log.known)
        self.log.publish(is_exact=not self.log.is_eventual)
        if len(self.log.known) > before:
            for bucket, numbers in self.unconfirmed.items():
                self.log.repair(keys_of(sorted(numbers)), bucket)
            self.unconfirmed.clear()
            self.log.known.append(LogBoundary(self.log.known.pop().snapshot_id, self.log.ends()))


def _read(history: History, rng: random.Random, begin: dict[str, object]) -> tuple[list[Row], str]:
    """All rows of a reader that is stopped at random, and gone on with in another process."""
    stream, rows = log_reader(history.log, batch_rows=rng.choice([1, 2, 5, None]), **begin), []
    while True:
        for batch in stream:
            rows += batch.to_pylist()
            if rng.random() < 0.3:
                break
        else:
            return rows, stream.position
        words = {key: value for key, value in begin.items() if key in ("until", "normalizes", "columns")}
        stream = log_reader(
            history.log, position=stream.position, batch_rows=rng.choice([1, 3, None]), **words
        )


@pytest.mark.parametrize("is_eventual", [False, True], ids=["transactional", "eventual"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(3, 160), deadline=None)
def test_every_reader_folds_to_the_table(seed: int, is_eventual: bool) -> None:
    """From each boundary to each later one, over repeated messages, unconfirmed records and folds, in portions."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_changes, "PORTION_ROWS", rng.choice([1, 3, 1000]))
        history = History(Path(folder), rng, is_eventual=is_eventual)
        for _ in range(10):
            history.step()
        history.publish()
        exact = [one.snapshot_id for one in history.log.known if one.is_exact]
        start = rng.choice(exact)
        until = rng.choice([one for one in exact if one >= start])
        before: State = state_of(history.store, start)
        begin: dict[str, object] = {"mode": "from-snapshot", "snapshot_id": start + 1, "until": until}
        if start == until:
            begin = (
                {"mode": "from-snapshot-full", "snapshot_id": start, "until": until}
                if start
                else {"mode": "earliest"}
            )
            before = Counter()
            until = until if start else history.log.reached
        rows, _ = _read(history, rng, begin)
        assert fold(before, rows, ["id"]) == state_of(history.store, until)
        whole = rows_of_batches(log_reader(history.log, **begin))
        assert sorted(map(repr, rows)) == sorted(map(repr, whole))
