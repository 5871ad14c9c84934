"""What a generator gives, batch after batch, and how it gets into the tables that models read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec

SCHEMA = "raw"  # of the tables that models read
_ROWS_OF_A_BUCKET, _BUCKETS_MAX = 1_000_000, 8


@dataclass(frozen=True)
class Put:
    """Rows by their key."""

    table: str
    rows: pa.Table


@dataclass(frozen=True)
class Remove:
    """Rows of these keys, which are the only columns."""

    table: str
    keys: pa.Table


@dataclass(frozen=True)
class Replace:
    """The table has these rows and no others: a full copy of a source."""

    table: str
    rows: pa.Table


Change = Put | Remove | Replace


class Feed(Protocol):
    """One generator in one state. `keys`: table → its primary key; `project`: the folder of its dbt project.

    `variables`: of dbt, for this scale. The same scale and seed give the same changes.
    """

    keys: Mapping[str, tuple[str, ...]]
    project: Path
    variables: Mapping[str, str]

    def first(self) -> Iterator[Change]:
        """The historical load, each table once."""

    def batch(self, number: int) -> Iterator[Change]:
        """What comes in the batch of this number, from 1; batches are asked for in turn."""


def load(engine: Engine, feed: Feed, changes: Iterable[Change], *, create: bool = False) -> int:
    """Write them, a commit each; rows written or removed. `create`: the tables are not there yet."""
    count = 0
    for change in changes:
        name = f"{SCHEMA}.{change.table}"
        if isinstance(change, Remove):
            engine.table(name).delete(change.keys)
            count += change.keys.num_rows
            continue
        mode = WriteMode.OVERWRITE_TABLE if isinstance(change, Replace) else WriteMode.UPSERT
        table = _spec(feed, change) if create else TableSpec()
        engine.write(name, change.rows, WriteSpec(table=table, mode=mode))
        count += change.rows.num_rows
    return count


def _spec(feed: Feed, change: Put | Replace) -> TableSpec:
    buckets = min(max(change.rows.num_rows // _ROWS_OF_A_BUCKET, 1), _BUCKETS_MAX)
    return TableSpec(primary_key=feed.keys[change.table], options={"bucket": str(buckets)})


def decimals(cents: np.ndarray, precision: int = 15) -> pa.Array:
    """DECIMAL(precision, 2) of whole cents."""
    cents = cents.astype(np.int64)
    words = np.column_stack([cents, cents >> 63]).astype("<i8")
    return pa.Array.from_buffers(
        pa.decimal128(precision, 2), len(cents), [None, pa.py_buffer(words.tobytes())]
    )


def dates(days: np.ndarray) -> pa.Array:
    """DATE of days since 1970-01-01."""
    return pa.array(days.astype(np.int32), pa.int32()).cast(pa.date32())


def texts(words: Iterable[str], picked: np.ndarray) -> pa.Array:
    """The words at these places."""
    return pa.array(list(words), pa.string()).take(pa.array(picked))


def numbered(prefix: str, numbers: np.ndarray, width: int = 9) -> pa.Array:
    """`prefix#000000042`, a unique text for each number."""
    return pa.array([f"{prefix}#{number:0{width}d}" for number in numbers.tolist()], pa.string())
