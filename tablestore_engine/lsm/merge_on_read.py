"""Deletion bitmaps for tables without deletion vectors: which rows a merging reader would not return.

Names      VersionFile         one file's keys, kinds and order among versions, as columns
           to_bitmap           positions as a bitmap
           deleted_positions   files → bitmaps: all versions but the newest of each key, and keys that end deleted
Steps      1 files whose key range meets no other need only their delete rows dropped
           2 the others: sort by key, sequence field, sequence number, adds last; keep the last if it adds
INVARIANT  merge order is (sequence field with NULL smallest, `_SEQUENCE_NUMBER`, retract before add): section 8;
           levels say nothing.
Only for   the deduplicate engine: other engines combine values, which a bitmap cannot do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from pyroaring import BitMap

from tablestore_engine.lsm.batch import SequenceOrder, retracts
from tablestore_engine.lsm.key_order import key_at, order_permutation, starts_of_groups


@dataclass(frozen=True)
class VersionFile:
    """One file, rows in file order: comparable keys (sorted), numbers, kinds, sequence field if the table has one."""

    name: str
    keys: pl.DataFrame
    sequence_numbers: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int8]
    sequence: SequenceOrder | None = None


def deleted_positions(files: Sequence[VersionFile]) -> Mapping[str, BitMap]:
    """File name → positions that a reader must skip; files without any are left out."""
    deleted: dict[str, BitMap] = {}
    for section in _sections([file for file in files if file.keys.height]):
        deleted.update(_of_one(section[0]) if len(section) == 1 else _of_section(section))
    return {name: positions for name, positions in deleted.items() if positions}


def _of_one(file: VersionFile) -> dict[str, BitMap]:
    return {file.name: to_bitmap(np.flatnonzero(retracts(file.kinds)))}


def _of_section(files: Sequence[VersionFile]) -> dict[str, BitMap]:
    """All versions of the section in merge order; the last of each key survives if it adds."""
    adds = ~retracts(np.concatenate([file.kinds for file in files]))
    columns = [pl.concat([file.keys for file in files])]
    directions = [False] * columns[0].width
    sequences = [file.sequence for file in files if file.sequence is not None]
    if sequences:
        stacked = pl.concat([one.frame for one in sequences])
        columns.append(stacked.rename({name: f"s{name}" for name in stacked.columns}))
        directions += sequences[0].descending
    number = pl.Series("n", np.concatenate([file.sequence_numbers for file in files]))
    columns.append(pl.DataFrame([number, pl.Series("a", adds)]))
    order = order_permutation(pl.concat(columns, how="horizontal"), descending=[*directions, False, False])
    starts = starts_of_groups(columns[0][order])
    survives = np.zeros(len(order), dtype=np.bool_)
    survives[order[np.append(starts[1:], True)]] = True
    survives &= adds
    out, at = {}, 0
    for file in files:
        out[file.name] = to_bitmap(np.flatnonzero(~survives[at : at + file.keys.height]))
        at += file.keys.height
    return out


def to_bitmap(positions: npt.NDArray[np.int64]) -> BitMap:
    """A bitmap of ascending row positions."""
    return BitMap(positions.astype(np.uint32))


def _sections(files: Sequence[VersionFile]) -> list[list[VersionFile]]:
    """Smallest sets of files whose key ranges overlap: only these can hold two versions of a key."""
    ranges = [(key_at(file.keys, 0), key_at(file.keys, -1), file) for file in files]
    ranges.sort(key=lambda one: one[0])
    sections: list[list[VersionFile]] = []
    reached: tuple[object, ...] | None = None
    for low, high, file in ranges:
        if reached is not None and low <= reached:
            sections[-1].append(file)
            reached = max(reached, high)
        else:
            sections.append([file])
            reached = high
    return sections
