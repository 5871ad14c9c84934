"""Readings of tables of which a query for some keys needs only the rows with these keys.

CHANGE     which tables are read by the keys of a `changed_keys` run, by columns that are no primary key
PROOF   The trace (key_trace) gives the keys of all rows that differ if one reading has other rows, whatever the other
        readings have. Let it be columns of the changed rows alone. Then rows whose columns are not among the keys
        differ from no rows at all only in other keys: without them the rows of these keys are the same. One reading
        after the other loses such rows.
INVARIANT  the value of a row does not depend on the order in which rows are read: `equals_full_refresh` holds to the
        bit. So windows, limits, sums of floating-point numbers and first() have no such reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tablestore_engine.queryplan.equal_values import is_carried, is_exact, is_float
from tablestore_engine.queryplan.key_trace import Unproven, trace_keys
from tablestore_engine.queryplan.keyed_parts import KeyedParts
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.occurrences import Occurrence, output_ids
from tablestore_engine.queryplan.plan_rules import LEAVES, PASSED
from tablestore_engine.queryplan.run_time import is_time
from tablestore_engine.queryplan.trace_steps import ChangedRows, RowsWhere, Select, Step

_ROW_BY_ROW = PASSED | LEAVES | {"Project", "Join", "Union", "Expand", "Generate"}


@dataclass(frozen=True)
class KeyedReading:
    """`names`: of the columns that are the key, by position."""

    occurrence: Occurrence
    names: tuple[str, ...]


def find_keyed_readings(
    known: KnownColumns, occurrences: Sequence[Occurrence], key: Sequence[int]
) -> tuple[KeyedReading, ...]:
    """`occurrences`: all of the plan; `key`: ExprIds of the root's columns. REQUIRES a deterministic plan."""
    if not _is_order_free(known, occurrences):
        return ()
    leaves = [output_ids(known.at(one.path))[:1] for one in occurrences]
    found = []
    for one, leaf in zip(occurrences, leaves, strict=True):
        if one.source.is_fixed or is_time(one) or leaves.count(leaf) > 1:  # one view loses rows in all places
            continue
        if not all(is_carried(known.attributes[each].type) for each in one.columns):
            continue
        try:
            step = trace_keys(known.with_changed([one]), one, key)
        except Unproven:
            continue
        ids = _columns(step, one, tuple(key))
        if ids is not None:
            found.append(KeyedReading(one, tuple(one.columns[each] for each in ids)))
    return tuple(found)


def _columns(step: Step, occurrence: Occurrence, ids: tuple[int, ...]) -> tuple[int, ...] | None:
    """The columns of changed rows that these columns of a step are; None: others, or of other rows."""
    match step:
        case ChangedRows(path) if path == occurrence.path:
            return ids if all(one in occurrence.columns for one in ids) else None
        case RowsWhere(child):
            return _columns(child, occurrence, ids)
        case Select(child, columns):
            sources = {one.identity: one.source for one in columns if not one.is_normalized}
            below = tuple(source for one in ids if isinstance(source := sources.get(one), int))
            return _columns(child, occurrence, below) if len(below) == len(ids) else None
    return None


def _is_order_free(known: KnownColumns, occurrences: Sequence[Occurrence]) -> bool:
    """Whether no value depends on the order in which rows are read."""
    parts = KeyedParts(known.with_changed(()), occurrences, has_percentiles=True)
    for node in known.root.walk():
        if node.subqueries:  # of their expressions no types are known
            return False
        if node.kind == "Aggregate":
            types = map(known.type_of, node.fields["groupingExpressions"])
            try:
                parts.check_group(node)
            except NoDelta:
                return False
            if not all(is_exact(one) or is_float(one) for one in types):
                return False
        elif node.kind not in _ROW_BY_ROW:
            return False
    return True
