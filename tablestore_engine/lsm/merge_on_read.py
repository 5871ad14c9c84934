"""Deletion bitmaps for tables without deletion vectors: which rows a merging reader would not return.

CHANGE     which rows a merging reader returns (options deletion-vectors.enabled)
Steps      1 files whose key range meets no other need only their delete rows dropped
           2 the others: all versions in merge order (versions) → one per key (merge engine) → it stays if it adds
INVARIANT  what lies in the files is all there is: a retraction that wins means that the key has no row.
INVARIANT  levels say nothing about age; the order is that of the rows (format.md#merge-order).
Only for   engines that take rows whole: combined values are in no file (store.merge.version_merge).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from pyroaring import BitMap

from tablestore_engine.lsm.key_order import Mask, key_at
from tablestore_engine.lsm.key_versions import retracts, sort_versions
from tablestore_engine.lsm.merge import merge_versions
from tablestore_engine.lsm.merge_engine import MergeEngine
from tablestore_engine.lsm.range_merge import Key
from tablestore_engine.lsm.runs_by_age import order_by_age
from tablestore_engine.lsm.sequence_field import SequenceOrder


@dataclass(frozen=True)
class VersionFile:
    """One file, rows in file order: comparable keys (sorted), numbers, kinds, sequence field if the table has one.

    gone   rows that a deletion vector hides: they are no versions
    """

    name: str
    keys: pl.DataFrame
    sequence_numbers: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int8]
    sequence: SequenceOrder | None = None
    gone: Mask | None = None


def deleted_positions(
    engine: MergeEngine, files: Sequence[VersionFile], *, ignores_deletes: bool = False
) -> Mapping[str, BitMap]:
    """File name → positions that a reader must skip; files without any are left out.

    ignores_deletes   rows that retract take nothing away
    """
    deleted: dict[str, BitMap] = {}
    for section in _sections([file for file in files if file.keys.height]):
        deleted.update(
            _of_one(section[0]) if len(section) == 1 else _of_section(engine, section, ignores_deletes)
        )
    return {name: positions for name, positions in deleted.items() if positions}


def _of_one(file: VersionFile) -> dict[str, BitMap]:
    dead = retracts(file.kinds)
    return {file.name: to_bitmap(np.flatnonzero(dead if file.gone is None else dead | file.gone))}


def _of_section(
    engine: MergeEngine, files: Sequence[VersionFile], ignores_deletes: bool
) -> dict[str, BitMap]:
    """All versions of the section meet; of each key the one that stands for it survives if it adds."""
    sequences = [file.sequence for file in files if file.sequence is not None]
    aged = None if sequences else order_by_age([((one.keys,), (one.sequence_numbers,)) for one in files])
    files = files if aged is None else [files[number] for number in aged]
    taken_away = retracts(np.concatenate([file.kinds for file in files]))
    keys, order = pl.concat([file.keys for file in files]), None
    if aged is None:
        field = SequenceOrder.stacked(sequences) if sequences else None
        numbers = np.concatenate([file.sequence_numbers for file in files])
        order = SequenceOrder.of_stored(field, numbers, ~taken_away)
    counts = np.concatenate([_versions(file) for file in files])
    counted = np.flatnonzero(counts & ~taken_away if ignores_deletes else counts)
    if len(counted) < len(taken_away):
        keys, order = keys[counted], None if order is None else order.at(counted)
    merged = merge_versions(engine, sort_versions(keys, taken_away[counted], order))
    survives = np.zeros(len(taken_away), dtype=np.bool_)
    survives[counted[merged.winners[~merged.deletes]]] = True
    out, at = {}, 0
    for file in files:
        out[file.name] = to_bitmap(np.flatnonzero(~survives[at : at + file.keys.height]))
        at += file.keys.height
    return out


def _versions(file: VersionFile) -> Mask:
    return np.ones(len(file.kinds), np.bool_) if file.gone is None else ~file.gone


def to_bitmap(positions: npt.NDArray[np.int64]) -> BitMap:
    """A bitmap of ascending row positions."""
    return BitMap(positions.astype(np.uint32))


def _sections(files: Sequence[VersionFile]) -> list[list[VersionFile]]:
    ranges = [(key_at(file.keys, 0), key_at(file.keys, -1)) for file in files]
    return [[files[number] for number in one] for one in sections_of(ranges)]


def sections_of(ranges: Sequence[tuple[Key, Key]]) -> list[list[int]]:
    """Numbers of the ranges (smallest, largest key) in the smallest sets that overlap no other, which ascend by key:
    only ranges of one set can hold two versions of a key.
    """
    sections: list[list[int]] = []
    reached: Key | None = None
    for number in sorted(range(len(ranges)), key=lambda one: ranges[one][0]):
        low, high = ranges[number]
        if reached is not None and low <= reached:
            sections[-1].append(number)
            reached = max(reached, high)
        else:
            sections.append([number])
            reached = high
    return sections
