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
    made = take_rows(rows, merged.winners)
    for name, values in merged.columns.items():
        made = made.set_column(made.column_names.index(name), made.schema.field(name), values)
    return made
