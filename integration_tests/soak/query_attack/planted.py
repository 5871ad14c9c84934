"""Errors put into the code on purpose: the attack has to find each of them.

`PLANTS` maps a name to what is replaced: an object, the name of its attribute, and what makes a wrong one of the right
one. The names are those of tablestore_engine/spark/traced_query.py and tablestore_engine/queryplan/key_trace.py, and of
the modules of deltas beside them.
A model has deltas or affected keys, so a planted error concerns some of the models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc

from integration_tests.soak.query_attack.linear import BY_KEY
from tablestore_engine.queryplan import key_trace, signed_rows
from tablestore_engine.queryplan.occurrences import output_ids
from tablestore_engine.queryplan.plan_nodes import PlanNode
from tablestore_engine.queryplan.signed_parts import SignedPart
from tablestore_engine.queryplan.signed_rows import SignedRows, Turns
from tablestore_engine.queryplan.trace_steps import RowsOverValue, Stored
from tablestore_engine.spark import input_changes, local_changes, local_steps, merged_groups, traced_query
from tablestore_engine.spark.changed_rows_text import ChangedKind
from tablestore_engine.spark.collected_parts import CollectedParts, NetTable, PartKeys
from tablestore_engine.spark.evaluated_keys import KeyedQuery
from tablestore_engine.spark.input_changes import InputChanges
from tablestore_engine.spark.plan_rows import PlanRows
from tablestore_engine.spark.spark_internals import SparkInner
from tablestore_engine.spark.traced_query import TracedQuery

Spoil = Callable[[Any], Any]
Patch = tuple[object, str, Spoil]


def _frames(keep: Callable[[Sequence[Any]], Sequence[Any]]) -> Patch:
    """The keys of some occurrences of changed tables are lost."""

    def spoil(right: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, frames, *more, **named: right(self, keep(frames), *more, **named)

    return TracedQuery, "_collect", spoil


def _kinds(*kinds: str) -> Patch:
    """Only changed rows of these kinds count."""
    wanted = ", ".join(f"'{one}'" for one in kinds)

    def spoil(right: Callable[..., str]) -> Callable[..., str]:
        return lambda *words: f"(select * from {right(*words)} where _row_kind in ({wanted}))"

    return input_changes, "relation_of", spoil


def _without_past(right: Callable[..., Any]) -> Callable[..., Any]:
    """Rows that other occurrences had before are lost."""

    def wrong(self: InputChanges, table: str, names: Any, kind: ChangedKind) -> Any:
        found = right(self, table, names, kind)
        inner = SparkInner.of(self.resolver.session)
        return inner.placeholder(found.output()) if kind is ChangedKind.PAST else found

    return wrong


def _without_single(right: Mapping[str, tuple[bool, bool]]) -> Mapping[str, tuple[bool, bool]]:
    """A join type that is not named is traced as an inner join."""
    return {name: kept for name, kept in right.items() if name != "LeftSingle"}


def _no_effect(right: Callable[..., Any]) -> Callable[..., Any]:
    """A total as a value is taken to make no difference for any row."""

    def wrong(*given: Any) -> Any:
        found = right(*given)
        is_over = isinstance(found.step, RowsOverValue)
        return replace(found, step=replace(found.step, values=())) if is_over else found

    return wrong


def _once(right: Callable[..., Any]) -> Callable[..., Any]:
    """A table counts where the query reads it first."""
    return lambda *words: tuple({one.table: one for one in reversed(right(*words))}.values())


def _every_second(right: Callable[..., Any]) -> Callable[..., Any]:
    """Half of the keys."""
    return lambda self, keys, find_rows: right(self, keys.slice(keys.num_rows // 2), find_rows)


def _none_gone(right: Callable[..., Any]) -> Callable[..., Any]:
    """A key without a row keeps the stored one."""
    return lambda self, keys, rows, find_rows: right(self, rows.select(keys.column_names), rows, find_rows)


# ---- of deltas ---------------------------------------------------------------------------------------------


def _one_sign(right: Callable[..., SignedPart]) -> Callable[..., SignedPart]:
    """A join keeps the signs of one side."""

    def wrong(node: PlanNode, parts: Sequence[SignedPart]) -> SignedPart:
        found = right(node, parts)
        return replace(found, signs=found.signs[:1])

    return wrong


def _all_now(right: Callable[..., SignedPart]) -> Callable[..., SignedPart]:
    """The rows of before are taken to be those of now."""
    return lambda self, node, _: SignedPart(Stored(node.path), frozenset(output_ids(node)))


def _never_old(right: Callable[..., SignedPart]) -> Callable[..., SignedPart]:
    """The old rows of a changed part are taken to be its new ones."""
    return lambda self, child, key, parts, *, is_old: right(self, child, key, parts, is_old=False)


def _without_null(right: Callable[..., PartKeys]) -> Callable[..., PartKeys]:
    """A key with NULL is the key of no part."""

    def wrong(self: CollectedParts, *given: Any) -> PartKeys:
        found = right(self, *given)
        return replace(found, rows=found.rows.drop_null())

    return wrong


def _without_vanished(right: Callable[..., NetTable]) -> Callable[..., NetTable]:
    """A part whose rows are gone, and none are new, keeps them."""

    def wrong(self: CollectedParts, *given: Any) -> NetTable:
        found = right(self, *given)
        is_new = pc.greater(found.rows.column("n"), 0)
        return found if pc.any(is_new).as_py() else replace(found, rows=found.rows.slice(0, 0))

    return wrong


def _unchecked(right: Callable[..., Any]) -> Callable[..., Any]:
    """What is not determined is merged all the same."""
    return lambda *given, **more: replace(found := right(*given, **more), again=found.again & False)


def _null_is_zero(right: Callable[..., Any]) -> Callable[..., Any]:
    """A sum of nothing is 0."""

    def wrong(group: Any, at: int, old: Any, **more: Any) -> Any:
        found = right(group, at, pc.fill_null(old, 0), **more)
        return replace(found, values=pc.fill_null(found.values, 0))

    return wrong


def _all_stay(right: Callable[..., Any]) -> Callable[..., Any]:
    """Each group has a row."""

    def wrong(group: Any, columns: Any, merged: Any, **more: Any) -> Any:
        uncounted = [replace(one, how="group") for one in columns]
        return right(group, uncounted, [replace(one, proves=~one.again) for one in merged], **more)

    return wrong


def _without_last(right: Callable[..., Any]) -> Callable[..., Any]:
    """A row that is joined in the driver has no partner."""
    return lambda *sides: tuple(one[:-1] for one in right(*sides))


def _one_local_sign(right: Callable[..., Any]) -> Callable[..., Any]:
    """Rows in the driver are all added."""

    def wrong(rows: PlanRows, factors: Sequence[int], sign: int) -> Any:
        return right(rows, factors[:0], sign)

    return wrong


PLANTS: dict[str, Patch] = {
    "no-last-branch": _frames(lambda frames: frames[:-1] or frames),
    "no-first-branch": _frames(lambda frames: frames[1:] or frames),
    "only-after": _kinds("+I", "+U"),
    "only-before": _kinds("-U", "-D"),
    "no-deletes": _kinds("+I", "-U", "+U"),
    "no-past": (InputChanges, "plan", _without_past),
    "one-occurrence": (traced_query, "find_occurrences", _once),
    "no-extension": (key_trace, "PRESERVING", lambda _: {}),
    "single-as-inner": (key_trace, "PRESERVING", _without_single),
    "value-without-effect": (key_trace._Builder, "_over_value", _no_effect),
    "no-total-row": (key_trace, "rows_of_nothing", lambda _: lambda _: 0),
    "every-second": (KeyedQuery, "evaluate", _every_second),
    "gone-keys-stay": (KeyedQuery, "_gone", _none_gone),
    "one-sign": (signed_rows, "_joined", _one_sign),
    "old-is-new": (Turns, "state", _all_now),
    "old-part-is-new": (SignedRows, "_own_rows", _never_old),
    "no-null-part": (CollectedParts, "keys", _without_null),
    "vanished-part": (CollectedParts, "rows", _without_vanished),
    "kept-extreme": (merged_groups, "merge_extreme", _unchecked),
    "null-sum-is-zero": (merged_groups, "_sum", _null_is_zero),
    "groups-stay": (merged_groups, "_states", _all_stay),
    "lost-partner": (local_steps, "equal_rows", _without_last),
    "one-local-sign": (local_steps, "_product", _one_local_sign),
    "no-context": (TracedQuery, "context", lambda _: lambda _: "the same"),
}


# plant → the clause in whose presence alone it is wrong
LOCAL = ("lost-partner", "one-local-sign")  # of rows in the driver
DELTAS = (*LOCAL, "one-sign", "old-is-new", "kept-extreme", "null-sum-is-zero", "groups-stay")
CLAUSES = {
    "single-as-inner": "look-up in from",
    "no-total-row": "total beside",
    "value-without-effect": "of results",
    **dict.fromkeys(DELTAS, "linear"),
    "lost-partner": BY_KEY,
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """While it lasts, the code has the error. But for LOCAL Spark reads all changes: errors in their SQL count."""
    owner, attribute, spoil = PLANTS[name]
    right, most = getattr(owner, attribute), local_changes.ROWS_MAX
    setattr(owner, attribute, spoil(right))
    local_changes.ROWS_MAX = most if name in LOCAL else -1
    try:
        yield
    finally:
        setattr(owner, attribute, right)
        local_changes.ROWS_MAX = most
