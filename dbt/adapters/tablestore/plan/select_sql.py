"""The SELECT whose rows become the next snapshot, for each incremental strategy.

CHANGE     the SELECT of an incremental strategy
INVARIANT  pure text: columns come in as names, the model's SQL is used as a subquery and never looked into.
INVARIANT  names are compared as Spark does, without case; a result's columns are in the table's order, new ones last.
WHY        no temporary table or view exists: two runs, threads or models can never meet in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SOURCE, TARGET = "DBT_INTERNAL_SOURCE", "DBT_INTERNAL_DEST"


@dataclass(frozen=True)
class Sides:
    """The model's SQL with its columns, and the table it goes into with its columns."""

    sql: str
    columns: tuple[str, ...]
    table: str
    table_columns: tuple[str, ...]

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns of both."""
        new = {name.lower() for name in self.columns}
        return tuple(name for name in self.table_columns if name.lower() in new)


def quote(name: str) -> str:
    """A column name in SQL."""
    return "`" + name.replace("`", "``") + "`"


def _with_new(sql: str) -> str:
    return f"with {SOURCE} as (\n{sql}\n)\n"


def merge_select(
    sides: Sides,
    key: Sequence[str],
    *,
    update: Sequence[str] = (),
    exclude: Sequence[str] = (),
    predicates: Sequence[str] = (),
) -> str:
    """Rows to upsert. A row whose key exists outside the predicates is an error: it would appear twice."""
    if not (update or exclude or predicates):
        return sides.sql
    on = " and ".join(f"{SOURCE}.{quote(name)} = {TARGET}.{quote(name)}" for name in key)
    found = f"{TARGET}.{quote(key[0])} is not null"
    kept = {name.lower() for name in _not_updated(sides, key, update, exclude)}
    items = [
        f"if({found}, {TARGET}.{quote(name)}, {SOURCE}.{quote(name)}) as {quote(name)}"
        if name.lower() in kept
        else f"{SOURCE}.{quote(name)}"
        for name in sides.columns
    ]
    text = f"select {', '.join(items)}\nfrom {SOURCE} left join {sides.table} as {TARGET} on {on}"
    if predicates:
        condition = " and ".join(f"({predicate})" for predicate in predicates)
        text += (
            f"\nwhere if({found} and not coalesce({condition}, false), raise_error({_outside(key)}), true)"
        )
    return _with_new(sides.sql) + text


def _outside(key: Sequence[str]) -> str:
    """The text of the error for a key outside the predicates, as a SQL expression."""
    values = ", ', ', ".join(f"cast({SOURCE}.{quote(name)} as string)" for name in key)
    return (
        f"concat('key (', {values}, ') exists outside incremental_predicates and cannot be inserted again')"
    )


def _not_updated(
    sides: Sides, key: Sequence[str], update: Sequence[str], exclude: Sequence[str]
) -> tuple[str, ...]:
    """Columns of existing rows that keep their old value."""
    keys = {name.lower() for name in key}
    if update:
        updated = {name.lower() for name in update} | keys
        return tuple(name for name in sides.kept if name.lower() not in updated)
    excluded = {name.lower() for name in exclude} - keys
    return tuple(name for name in sides.kept if name.lower() in excluded)


def replace_select(
    sides: Sides, key: Sequence[str], columns: Sequence[str], predicates: Sequence[str] = ()
) -> str:
    """delete+insert where predicates in SQL limit what may be deleted."""
    match = " and ".join(f"{SOURCE}.{quote(name)} = {TARGET}.{quote(name)}" for name in key)
    condition = f"exists (select 1 from {SOURCE} where {match})"
    for predicate in predicates:
        condition += f" and coalesce({predicate}, false)"
    return _with_new(sides.sql) + _union(sides, columns, f"\nwhere not ({condition})")


def _union(sides: Sides, columns: Sequence[str], where: str) -> str:
    """Old rows that stay, and the new ones, with one list of columns; absent ones are NULL."""
    old = _items(columns, sides.table_columns, TARGET)
    new = _items(columns, sides.columns, SOURCE)
    return f"select {old}\nfrom {sides.table} as {TARGET}{where}\nunion all\nselect {new}\nfrom {SOURCE}"


def _items(columns: Sequence[str], present: Sequence[str], alias: str) -> str:
    known = {name.lower() for name in present}
    return ", ".join(
        f"{alias}.{quote(name)}" if name.lower() in known else f"null as {quote(name)}" for name in columns
    )
