"""Readers of tests: open one on a store, read to a bound, fold what it gave, stop and go on elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from tablestore_engine.store.table_store import TableStore
from tablestore_engine.stream.open_stream import NOW, StreamRequest, open_stream
from tablestore_engine.stream.startup_mode import parse_request
from tablestore_engine.stream.table_stream import Pace, TableStream
from tests.doubles.reference_model import Frozen, freeze
from tests.unit.store.table_world import Row, open_table, rows_of

State = Counter[Frozen]
KIND, ID = "_row_kind", "_snapshot_id"


def reader(store: TableStore, mode: str | None = None, **words: object) -> TableStream:
    """A reader that ends at the newest snapshot, if not said otherwise: words of the mode and of StreamRequest."""
    at = {key: words.pop(key) for key in ("snapshot_id", "timestamp_ms", "options") if key in words}
    start = parse_request(mode, **at) if mode is not None or at else None  # type: ignore[arg-type]
    words.setdefault("until", NOW)
    if "wait" in words:
        words["pace"] = Pace(0.0, wait=words.pop("wait"))  # type: ignore[arg-type]
    return open_stream(store.context, StreamRequest(start=start, **words))  # type: ignore[arg-type]


def rows_of_batches(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """All rows."""
    return [row for batch in batches for row in batch.to_pylist()]


def told(stream: TableStream) -> list[tuple[str, object]]:
    """(kind, id) of all rows."""
    return [(str(row[KIND]), row["id"]) for row in rows_of_batches(stream)]


def fold(state: State, rows: Iterable[Row], keys: Sequence[str]) -> State:
    """The table after these changes; a key has one row, and a delete of what is not there is a mistake."""
    after = Counter(state)
    by_key = {tuple(dict(one)[key] for key in keys): one for one in after} if keys else {}
    for row in rows:
        kind, one = row[KIND], freeze({name: value for name, value in row.items() if name not in (KIND, ID)})
        key = tuple(row[name] for name in keys)
        if kind in ("+I", "+U"):
            if keys and key in by_key:
                raise AssertionError(f"{kind} of {key}, which is there: {by_key[key]}")
            after[one] += 1
            by_key[key] = one
        else:
            gone = by_key.pop(key) if keys else one
            assert gone == one, f"{kind} of {one}, but there is {gone}"
            after[one] -= 1
            assert after[one] >= 0, f"{kind} of {one}, which is not there"
    return +after


def state_of(store: TableStore, snapshot_id: int) -> State:
    """The table at a snapshot; nothing at 0."""
    return Counter() if snapshot_id == 0 else Counter(freeze(row) for row in rows_of(store, snapshot_id))


def read_in_pieces(
    root: Path, begin: Callable[[TableStore], TableStream], cuts: Sequence[int]
) -> tuple[TableStream, list[Row]]:
    """All rows of a reader that is stopped after so many batches, each time gone on with by another process."""
    stream, rows, left = begin(open_table(root)), list[Row](), list(cuts)
    while True:
        stop_after = left.pop(0) if left else None
        for number, batch in enumerate(stream, start=1):
            rows += batch.to_pylist()
            if number == stop_after:
                break
        else:
            return stream, rows
        position = stream.position
        stream = reader(
            open_table(root), position=position, until=None if left is None else NOW, batch_rows=2
        )
