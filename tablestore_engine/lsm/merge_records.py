"""What a merge of incoming and stored rows is given, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Index, Mask
from tablestore_engine.lsm.merge_engine import Merged
from tablestore_engine.lsm.sequence_field import SequenceOrder
from tablestore_engine.lsm.version_stack import VersionStack


@dataclass(frozen=True)
class IncomingRecords:
    """`deletes[i]`: row i retracts; `update_befores[i]`: by -U (None: none does).

    stack      all versions of the keys, of which `rows` has one each: of level 0, for engines that combine
    replaces   they come from a statement or an overwrite: a delete is a delete
    into_empty   nothing is stored yet
    """

    rows: pa.Table
    deletes: Mask
    update_befores: Mask | None = None
    stack: VersionStack | None = None
    replaces: bool = False
    into_empty: bool = False


@dataclass(frozen=True)
class StoredRecords:
    """Entry j is the visible row of the key of incoming row `hits[j]`.

    rows    None when nobody asked for their values
    newer   which come after their incoming row; None: no sequence field says so of any
    gives_way   which were taken away by who brings the incoming rows
    order   of the rows among those of a stack; None without one
    """

    hits: Index
    rows: pa.Table | None
    newer: Mask | None
    gives_way: Mask
    order: SequenceOrder | None = None


@dataclass(frozen=True)
class MergeResult:
    """What key i holds then: `rows[i]`, no row where `deletes[i]`; the key of hit j where `kept[j]`: its stored row."""

    rows: pa.Table
    deletes: Mask
    hits: Index
    kept: Mask


def merged_rows(rows: pa.Table, merged: Merged) -> pa.Table:
    """The rows of the winners, with combined values where there are any."""
    if not merged.columns:
        return take_rows(rows, merged.winners)
    names = rows.column_names
    plain = take_rows(rows.select([name for name in names if name not in merged.columns]), merged.winners)
    made = [merged.columns[name] if name in merged.columns else plain.column(name) for name in names]
    return pa.Table.from_arrays(made, schema=rows.schema)
