"""How versions of a key become one row, a rule for each merge engine: plain Python over one key at a time.

INVARIANT  it shares no code with the engine: the engine merges columns of Arrow, this merges dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Stored = dict[int, Any]
Rule = Callable[[Mapping[str, int], Stored | None, str, Stored], Stored | None]  # ids by name, old, kind, new
_PUT = ("+I", "+U")


def latest(_: Mapping[str, int], __: Stored | None, kind: str, new: Stored) -> Stored | None:
    """deduplicate: the newest version, None after a delete."""
    return new if kind in _PUT else None


def latest_without_deletes(_: Mapping[str, int], old: Stored | None, kind: str, new: Stored) -> Stored | None:
    """deduplicate with `ignore-delete`."""
    return new if kind in _PUT else old


def first(_: Mapping[str, int], old: Stored | None, kind: str, new: Stored) -> Stored | None:
    """first-row, with `ignore-delete`."""
    return old if old is not None or kind not in _PUT else new


def by_sequence(*columns: str) -> Rule:
    """deduplicate with `sequence.field`: the version with the greatest values, the later one of equals."""

    def merge(ids: Mapping[str, int], old: Stored | None, kind: str, new: Stored) -> Stored | None:
        def place(row: Stored) -> list[tuple[bool, Any]]:
            return [(row.get(ids[name]) is not None, row.get(ids[name])) for name in columns]

        if old is not None and place(new) < place(old):
            return old
        return new if kind in _PUT else None

    return merge


def partial(*, on_delete: str = "") -> Rule:
    """partial-update: values that are not NULL replace; `on_delete` is 'remove' or 'ignore'."""

    def merge(_: Mapping[str, int], old: Stored | None, kind: str, new: Stored) -> Stored | None:
        if kind not in _PUT:
            return None if on_delete == "remove" else old
        return {**(old or new), **{one: value for one, value in new.items() if value is not None}}

    return merge


def in_groups(groups: Mapping[str, Sequence[str]], functions: Mapping[str, str]) -> Rule:
    """partial-update with sequence groups: {sequence column: columns}; functions of the kind whose order is free."""
    grouped = {name for columns in groups.values() for name in columns} | {*groups}

    def merge(ids: Mapping[str, int], old: Stored | None, _: str, new: Stored) -> Stored | None:
        row = dict(old) if old is not None else dict.fromkeys(new)
        for name, one in ids.items():
            if name not in grouped and new.get(one) is not None:
                row[one] = new[one]
        for sequence, columns in groups.items():
            given, stored = new.get(ids[sequence]), row.get(ids[sequence])
            if given is None:
                continue
            is_newer = stored is None or given >= stored
            for name in columns:
                if name in functions:
                    row[ids[name]] = FUNCTIONS[functions[name]](row.get(ids[name]), new.get(ids[name]))
                elif is_newer:
                    row[ids[name]] = new.get(ids[name])
            if is_newer:
                row[ids[sequence]] = given
        return row

    return merge


def aggregated(functions: Mapping[str, str], *, removes: bool = False) -> Rule:
    """aggregation: a function for each column, last_non_null_value for the others."""

    def merge(ids: Mapping[str, int], old: Stored | None, kind: str, new: Stored) -> Stored | None:
        if kind not in _PUT and removes:
            return None
        row = dict(old) if old is not None else dict.fromkeys(new)
        for name, one in ids.items():
            function = functions.get(name, "last_non_null_value")
            if kind not in _PUT:
                if function == "sum":
                    row[one] = _sum(row.get(one), _minus(new.get(one)))
            elif old is None:
                row[one] = _first_of(function, new.get(one))
            else:
                row[one] = FUNCTIONS[function](row.get(one), new.get(one))
        return row

    return merge


def _minus(value: Any) -> Any:
    return None if value is None else -value


def _first_of(function: str, value: Any) -> Any:
    """Of the first version, which merges with nothing."""
    return value if function != "distinct collect" or value is None else tuple(dict.fromkeys(value))


def _with_null(combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda old, new: new if old is None else old if new is None else combine(old, new)


_sum = _with_null(lambda old, new: old + new)
FUNCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "sum": _sum,
    "product": _with_null(lambda old, new: old * new),
    "max": _with_null(max),
    "min": _with_null(min),
    "last_value": lambda _, new: new,
    "last_non_null_value": _with_null(lambda _, new: new),
    "first_value": lambda old, _: old,
    "first_non_null_value": _with_null(lambda old, _: old),
    "bool_and": _with_null(lambda old, new: old and new),
    "bool_or": _with_null(lambda old, new: old or new),
    "listagg": _with_null(lambda old, new: f"{old},{new}"),
    "collect": _with_null(lambda old, new: old + new),
    "merge_map": _with_null(
        lambda old, new: ("map", tuple(sorted({**dict(old[1]), **dict(new[1])}.items(), key=repr)))
    ),
}
