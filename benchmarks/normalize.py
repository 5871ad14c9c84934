"""The normalize step of a log's reader alone: messages that change a stored row each, decoded, looked up and told.

Steps      a table of n rows → an upsert of every row in ten snapshots, as the messages that a publisher would send,
           made a portion at a time and not measured → what the reader does with each portion
State      as the reader has it: forgotten at each snapshot, or (--one) all messages are of one snapshot, so that keys
           above stream/key_state.KEYS_MAX lie on disk
INVARIANT  each message gives two rows, and their sum is what is stored in the end, or the figures are void.
Usage      python -m benchmarks.normalize [--rows 500000] [--rounds 3] [--one]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.data import rows_of
from tablestore_engine.api import Engine, Table, TableSpec, WriteSpec
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.log.followed_log import UNSAID, Messages
from tablestore_engine.log.log_formats import LogFormats
from tablestore_engine.log.message_envelope import ChangelogMode, encode_rows, plan_envelope
from tablestore_engine.log.message_rows import decode_messages
from tablestore_engine.store.read.key_lookup import find_rows
from tablestore_engine.store.read.row_cache import RowCache
from tablestore_engine.stream.key_state import KeyState
from tablestore_engine.stream.log_changes import PORTION_ROWS
from tablestore_engine.stream.normalize import Normalizer

SNAPSHOTS = 10


@dataclass(frozen=True)
class Figures:
    """Seconds of one pass over all messages."""

    wall: float
    processor: float


def make_table(folder: Path, rows: int) -> Table:
    """The rows before the messages."""
    engine = Engine(str(folder))
    engine.create_database("bench")
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}))
    engine.write("bench.t", rows_of(np.random.default_rng(1).permutation(rows), seed=1), spec)
    return engine.table("bench.t")


def measure(table: Table, rows: int, *, is_one: bool) -> Figures:
    """Raises SystemExit where the changes are not those of the rows."""
    schema, store = table.schema, table.store
    plan = store.plan_scan(store.snapshots.get(1))
    state = KeyState()
    normalizer = Normalizer(schema, state, partial(find_rows, store.fileio, plan, kept=RowCache()))

    def decode(messages: Messages) -> pa.Table:
        return decode_messages(messages, [schema], LogFormats())

    told = total = snapshot = 0
    wall = processor = 0.0
    for messages in _messages(table, rows):
        began, used = time.perf_counter(), time.process_time()
        changes = normalizer.apply(messages, decode)
        if not is_one and messages.snapshots[0] != snapshot:
            state.clear()
        normalizer.learn(messages)
        wall, processor = wall + time.perf_counter() - began, processor + time.process_time() - used
        snapshot = int(messages.snapshots[0])
        told += changes.rows.num_rows
        signs = np.where(np.isin(changes.kinds, (RowKind.UPDATE_BEFORE, RowKind.DELETE)), -1, 1)
        total += int((changes.rows["quantity"].to_numpy().astype(np.int64) * signs).sum())
    before = int(table.scan(columns=["quantity"]).to_arrow()["quantity"].to_numpy().astype(np.int64).sum())
    after = sum(int(_upsert(rows, number)["quantity"].to_numpy().sum()) for number in range(SNAPSHOTS))
    if told != 2 * rows or before + total != after:
        raise SystemExit(f"{told} rows, sum {before + total}, expected {2 * rows} and {after}")
    return Figures(wall, processor)


def measure_normalize(folder: Path, rows: int) -> int:
    """Messages a second."""
    return round(rows / measure(make_table(folder, rows), rows, is_one=False).wall)


def _upsert(rows: int, number: int) -> pa.Table:
    keys = np.array_split(np.random.default_rng(2).permutation(rows), SNAPSHOTS)[number]
    return rows_of(keys, seed=10 + number)


def _messages(table: Table, rows: int) -> Iterator[Messages]:
    envelope, sent = plan_envelope(table.schema, ChangelogMode.AUTO), 0
    for number in range(SNAPSHOTS):
        upsert = _upsert(rows, number)
        upsert = upsert.append_column(ROW_KIND_COLUMN, pa.array(np.zeros(len(upsert), np.int8)))
        for start in range(0, len(upsert), PORTION_ROWS):
            encoded = encode_rows(upsert.slice(start, PORTION_ROWS), envelope)
            count = len(encoded)
            yield Messages(
                np.zeros(count, np.int64),
                np.arange(sent, sent + count),
                encoded.keys or [],
                encoded.values,
                np.full(count, UNSAID, np.int8),
                np.full(count, number + 2),
                {0: sent + count},
            )
            sent += count


def main(argv: list[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", action="store_true", help="all messages are of one snapshot")
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        table = make_table(Path(folder), asked.rows)
        found = [measure(table, asked.rows, is_one=asked.one) for _ in range(asked.rounds)]
    wall, processor = (
        statistics.median(getattr(one, name) for one in found) for name in ("wall", "processor")
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(
        f"{asked.rows} keys: {asked.rows / wall:,.0f} messages/s, {asked.rows / processor:,.0f} a processor second, "
        f"peak {peak} MiB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
