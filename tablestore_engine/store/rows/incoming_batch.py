"""Rows of one bucket become a batch: one version per key, in key order, ready for the merge with stored rows.

CHANGE     repeated keys and retractions in a batch (options tablestore.duplicates, ignore-delete,
           ignore-update-before)
Steps      -U rows that say nothing go (unless the engine combines) → versions in merge order → merge engine
REQUIRES   rows are checked and have the table's columns (routing.route_rows).
INVARIANT  the outcome depends on the arrival of rows only where `tablestore.duplicates` = last says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from tablestore_engine.error_values import count_of, sql_row
from tablestore_engine.errors import FixData, RepeatedKeys
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.arrow_take import keeps_all, take_rows
from tablestore_engine.lsm.key_order import Index, Mask, order_columns, take_keys
from tablestore_engine.lsm.key_versions import Versions, retracts, sort_versions, without_update_before
from tablestore_engine.lsm.merge import merge_versions
from tablestore_engine.lsm.merge_records import merged_rows
from tablestore_engine.lsm.sequence_field import SequenceOrder
from tablestore_engine.lsm.version_stack import VersionStack, join_stacks
from tablestore_engine.store.rows.conformed_rows import SAMPLES, frame_samples
from tablestore_engine.store.table_traits import TableTraits


@dataclass(frozen=True)
class Batch:
    """`numbers` are given when the rows already have sequence numbers (taken in from level 0).

    update_befores   which of `deletes` are -U; None: none
    stack     all versions of the keys, of rows from level 0 under an engine that combines values
    at   row numbers of `source` in key order, None: all as they are. Rows are put in order when someone asks for them,
         so that a large batch, asked for slice by slice, is never held twice
    """

    source: pa.Table
    at: Index | None
    keys: pl.DataFrame
    deletes: Mask
    sequence: SequenceOrder | None
    numbers: npt.NDArray[np.int64] | None = None
    update_befores: Mask | None = None
    stack: VersionStack | None = None

    @cached_property
    def rows(self) -> pa.Table:
        """One row per key, in key order."""
        return self.source if self.at is None else take_rows(self.source, self.at)

    def slice(self, offset: int = 0, length: int | None = None) -> Batch:
        """Rows of some neighbouring keys."""
        end = self.keys.height if length is None else offset + length
        whole = self.sequence
        return Batch(
            self.source.slice(offset, end - offset) if self.at is None else self.source,
            None if self.at is None else self.at[offset:end],
            self.keys.slice(offset, end - offset),
            self.deletes[offset:end],
            None
            if whole is None
            else SequenceOrder(whole.frame.slice(offset, end - offset), whole.descending),
            None if self.numbers is None else self.numbers[offset:end],
            None if self.update_befores is None else self.update_befores[offset:end],
            None if self.stack is None else self.stack.of_keys(offset, end),
        )


def join_batches(parts: Sequence[Batch]) -> Batch:
    """Batches that follow each other in key order, at least one, as one."""
    if len(parts) == 1:
        return parts[0]
    numbers = [one.numbers for one in parts if one.numbers is not None]
    update_befores = [
        np.zeros_like(one.deletes) if one.update_befores is None else one.update_befores for one in parts
    ]
    sequences = [one.sequence for one in parts if one.sequence is not None]
    stacks = [one.stack for one in parts if one.stack is not None]
    return Batch(
        pa.concat_tables([one.rows for one in parts]),
        None,
        pl.concat([one.keys for one in parts]),
        np.concatenate([one.deletes for one in parts]),
        SequenceOrder.stacked(sequences) if sequences else None,
        np.concatenate(numbers) if numbers else None,
        np.concatenate(update_befores) if any(one.update_befores is not None for one in parts) else None,
        join_stacks(stacks, [one.keys.height for one in parts]) if stacks else None,
    )


def empty_batch(schema: TableSchema) -> Batch:
    rows = schema.arrow_schema().empty_table()
    return Batch(rows, None, order_columns(rows, schema.trimmed_primary_keys), np.zeros(0, np.bool_), None)


def sequence_of(rows: pa.Table, traits: TableTraits) -> SequenceOrder | None:
    """Comparable columns of option `sequence.field`, None without it."""
    names = traits.sequence_fields
    if not names:
        return None
    return SequenceOrder.of(order_columns(rows, names), descending=traits.is_sequence_descending)


def batch_of(
    rows: pa.Table,
    kinds: npt.NDArray[np.int8] | None,
    traits: TableTraits,
    *,
    replaces: bool = False,
    buckets: pl.Series | None = None,
    names: Sequence[str] | None = None,
) -> Batch:
    """Rows in the order of their arrival; `replaces`: stored rows go when they are written, and a delete is a delete.

    `buckets`: of each row a number, which then goes before the key: rows of several buckets are one batch. `names`: of
    the key's columns, where rows of several partitions are one.

    Raises FixData TS1601 for repeated keys that nothing orders, TS1657 for retractions that the engine does not take.
    """
    keys = order_columns(rows, names or traits.schema.trimmed_primary_keys)
    if buckets is not None:
        keys = pl.DataFrame([buckets]).hstack(keys)
    if kinds is not None and not replaces:
        rows, kinds, keys = _accepted(rows, kinds, keys, traits)
    if kinds is not None and traits.merge_engine.newest_wins and bool((kinds == RowKind.UPDATE_BEFORE).any()):
        keep = without_update_before(keys, kinds)
        rows, kinds, keys = rows.filter(pa.array(keep)), kinds[keep], keys.filter(pl.Series(keep))
    deletes = np.zeros(rows.num_rows, dtype=np.bool_) if kinds is None else retracts(kinds)
    field = sequence_of(rows, traits)
    combines = traits.merge_engine.combines
    versions = sort_versions(
        keys, deletes, field, rows if combines else None, _befores(kinds) if combines else None
    )
    if not versions.are_single and not traits.last_wins:
        tied = traits.merge_engine.find_ties(versions)
        if len(tied):
            raise _tied(rows, traits, tied)
    return _merged(rows, keys, versions, field, traits)


def batch_of_stored(
    rows: pa.Table, kinds: npt.NDArray[np.int8], numbers: npt.NDArray[np.int64], traits: TableTraits
) -> Batch:
    """Rows in any order; their numbers and their kinds order them. A row keeps the number of its version.

    Raises FixData TS1657 as batch_of.
    """
    rows, kinds, numbers = accepted_rows(rows, kinds, numbers, traits)
    deletes = retracts(kinds)
    keys, field = order_columns(rows, traits.schema.trimmed_primary_keys), sequence_of(rows, traits)
    order = SequenceOrder.of_stored(field, numbers, ~deletes)
    if traits.merge_engine.combines:
        return _stacked(rows, keys, kinds, numbers, order)
    return _merged(rows, keys, sort_versions(keys, deletes, order), field, traits, numbers)


def _stacked(
    rows: pa.Table,
    keys: pl.DataFrame,
    kinds: npt.NDArray[np.int8],
    numbers: npt.NDArray[np.int64],
    order: SequenceOrder,
) -> Batch:
    """Every version, to be merged with the stored row at once; the newest of each key stands for it."""
    versions = sort_versions(keys, retracts(kinds), order)
    at, update_befores = versions.order, _befores(kinds)
    stack = VersionStack(
        take_rows(rows, at),
        np.cumsum(versions.starts) - 1,
        order.at(at),
        versions.retracts[at],
        None if update_befores is None else update_befores[at],
    )
    newest = at[versions.ends]
    return Batch(rows, newest, keys[newest], versions.retracts[newest], None, numbers[newest], None, stack)


def written_mask(kinds: npt.NDArray[np.int8], traits: TableTraits) -> Mask | None:
    """Which rows of a write count, by their kinds; None: all."""
    if not traits.unwritten_kinds:
        return None
    gone = np.isin(kinds, list(traits.unwritten_kinds))
    return ~gone if gone.any() else None


def _accepted(
    rows: pa.Table, kinds: npt.NDArray[np.int8], keys: pl.DataFrame, traits: TableTraits
) -> tuple[pa.Table, npt.NDArray[np.int8], pl.DataFrame]:
    """Without the retractions that the table ignores. Raises FixData TS1657."""
    unwritten = written_mask(kinds, traits)
    if unwritten is not None:
        rows, kinds, keys = (
            rows.filter(pa.array(unwritten)),
            kinds[unwritten],
            keys.filter(pl.Series(unwritten)),
        )
    rows, kinds, left = accepted_rows(rows, kinds, np.arange(len(kinds)), traits)
    return rows, kinds, keys if len(left) == keys.height else keys[left]


def accepted_rows(
    rows: pa.Table, kinds: npt.NDArray[np.int8], numbers: npt.NDArray[np.int64], traits: TableTraits
) -> tuple[pa.Table, npt.NDArray[np.int8], npt.NDArray[np.int64]]:
    """Rows, their kinds and numbers without the retractions that the table ignores. Raises FixData TS1657."""
    gone = retracts(kinds)
    if not gone.any():
        return rows, kinds, numbers
    if traits.ignores_deletes:
        return rows.filter(pa.array(~gone)), kinds[~gone], numbers[~gone]
    if not traits.merge_engine.takes_retractions:
        samples = frame_samples(rows, traits.schema.primary_keys, np.flatnonzero(gone))
        raise FixData(
            "TS1657",
            f"the merge engine {traits.merge_engine_name} does not take rows that retract (-U, -D)",
            why=f"keys, {min(int(gone.sum()), SAMPLES)} of {int(gone.sum())}: "
            + "; ".join(map(sql_row, samples)),
            fix="leave these rows out, or create the table with 'ignore-delete' = 'true'; to delete rows use DELETE",
        )
    return rows, kinds, numbers


def _merged(
    rows: pa.Table,
    keys: pl.DataFrame,
    versions: Versions,
    field: SequenceOrder | None,
    traits: TableTraits,
    numbers: npt.NDArray[np.int64] | None = None,
) -> Batch:
    merged = merge_versions(traits.merge_engine, versions)
    winners = merged.winners
    source, at = (merged_rows(rows, merged), None) if merged.columns else (rows, winners)
    if keeps_all(winners, rows.num_rows):
        at = None
    else:
        keys, field = take_keys(keys, winners), None if field is None else field.at(winners)
    if merged.columns:
        field = sequence_of(source, traits)
    update_befores = None
    if versions.update_befores is not None:  # of several versions the outcome is a row or -D
        is_lone = versions.ends[versions.starts]
        update_befores = versions.update_befores[winners] & is_lone
    return Batch(
        source, at, keys, merged.deletes, field, None if numbers is None else numbers[winners], update_befores
    )


def _befores(kinds: npt.NDArray[np.int8] | None) -> Mask | None:
    found = None if kinds is None else np.asarray(kinds == RowKind.UPDATE_BEFORE)
    return found if found is not None and found.any() else None


def _tied(rows: pa.Table, traits: TableTraits, tied: npt.NDArray[np.int64]) -> RepeatedKeys:
    samples = frame_samples(rows, traits.schema.primary_keys, tied)
    keys_occur = count_of(len(tied), "key occurs", "keys occur")
    return RepeatedKeys(
        "TS1601",
        f"{keys_occur} more than once with nothing to order their rows",
        why=f"keys with equal order, {min(len(tied), SAMPLES)} of {len(tied)}: "
        + "; ".join(map(sql_row, samples)),
        fix="make the keys unique, set sequence_field to a column that orders the rows, "
        "or accept the last row with duplicates='last'",
        keys=samples,
    )
