"""Errors put into the code on purpose: the attack has to find each of them.

`PLANTS` maps a name to what is replaced: an object, the name of its attribute, and what makes a wrong one of the right
one. The names are those of tablestore_engine/spark/traced_query.py and tablestore_engine/queryplan/key_trace.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dbt.adapters.tablestore.plan import build_plan
from tablestore_engine.queryplan import key_trace
from tablestore_engine.spark import traced_query
from tablestore_engine.spark.traced_query import TracedQuery

Spoil = Callable[[Any], Any]
Patch = tuple[object, str, Spoil]


def _frames(keep: Callable[[Sequence[Any]], Sequence[Any]]) -> Patch:
    """The keys of some occurrences of changed tables are lost."""

    def spoil(right: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, frames, view: right(self, keep(frames), view)

    return TracedQuery, "_collect", spoil


def _kinds(*kinds: str) -> Patch:
    """Only changed rows of these kinds count."""
    wanted = ", ".join(f"'{one}'" for one in kinds)

    def spoil(right: Callable[..., str]) -> Callable[..., str]:
        return lambda *words: f"(select * from {right(*words)} where _row_kind in ({wanted}))"

    return traced_query, "_relation", spoil


def _without_past(right: Callable[..., Any]) -> Callable[..., Any]:
    """Rows that other occurrences had before are lost."""

    def wrong(self: TracedQuery, ranges: dict[str, str], table: str, names: Any, is_past: bool) -> Any:
        empty = {one: f"(select * from {text} where false)" for one, text in ranges.items()}
        return right(self, empty if is_past else ranges, table, names, is_past)

    return wrong


def _without_single(right: Mapping[str, tuple[bool, bool]]) -> Mapping[str, tuple[bool, bool]]:
    """A join type that is not named is traced as an inner join."""
    return {name: kept for name, kept in right.items() if name != "LeftSingle"}


def _once(right: Callable[..., Any]) -> Callable[..., Any]:
    """A table counts where the query reads it first."""
    return lambda *words: tuple({one.table: one for one in reversed(right(*words))}.values())


def _every_second(right: Callable[..., str]) -> Callable[..., str]:
    """Half of the keys."""
    condition = "pmod(xxhash64(struct(planted.*)), 2) = 0"
    return lambda sql, keys, **named: right(
        sql, replace(keys, sql=f"select * from (\n{keys.sql}\n) planted where {condition}"), **named
    )


PLANTS: dict[str, Patch] = {
    "no-last-branch": _frames(lambda frames: frames[:-1] or frames),
    "no-first-branch": _frames(lambda frames: frames[1:] or frames),
    "only-after": _kinds("+I", "+U"),
    "only-before": _kinds("-U", "-D"),
    "no-deletes": _kinds("+I", "-U", "+U"),
    "no-past": (TracedQuery, "_changes", _without_past),
    "one-occurrence": (traced_query, "find_occurrences", _once),
    "no-extension": (key_trace, "PRESERVING", lambda _: {}),
    "single-as-inner": (key_trace, "PRESERVING", _without_single),
    "no-total-row": (key_trace, "rows_of_nothing", lambda _: lambda _: 0),
    "every-second": (build_plan, "changed_keys_select", _every_second),
    "no-context": (TracedQuery, "context", lambda _: lambda _: "the same"),
}


# plant → the clause in whose presence alone it is wrong
CLAUSES = {"single-as-inner": "look-up in from", "no-total-row": "total beside"}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """While it lasts, the code has the error."""
    owner, attribute, spoil = PLANTS[name]
    right = getattr(owner, attribute)
    setattr(owner, attribute, spoil(right))
    try:
        yield
    finally:
        setattr(owner, attribute, right)
