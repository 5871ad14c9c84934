"""incremental_strategy='changed_keys': which keys of a model each of its inputs affects.

Names      Affected        the key that is followed, and the expressions that lead to it
           read_affected   from a config; None for other strategies
INVARIANT  an input that nobody has named leads to the key by columns of the same names, or is an error when it is read
           (inputs/changed_keys.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.tablestore.config.value_shapes import read_columns, read_mapping
from tablestore_engine.errors import FixRequest

STRATEGY = "changed_keys"
_LIMIT = 0.3
_KEYS = ("affected_by", "affected_key", "affected_limit")


@dataclass(frozen=True)
class Affected:
    """`by`: input (table, or schema.table) and one SQL expression over its columns for each column of the key.

    `limit`: where more than this share of an input's rows has changed, all rows are compared.
    """

    key: tuple[str, ...]
    by: tuple[tuple[str, tuple[str, ...]], ...] = ()
    limit: float = _LIMIT

    def find(self, schema: str, table: str) -> tuple[str, ...] | None:
        """The expressions of an input; None when it is not named. Names have no case."""
        named = {name.lower(): expressions for name, expressions in self.by}
        return named.get(f"{schema}.{table}".lower(), named.get(table.lower()))


def read_affected(
    name: str, values: Mapping[str, Any], primary_key: tuple[str, ...], strategy: str
) -> Affected | None:
    """Raises FixRequest TS1837, TS1811."""
    given = [key for key in _KEYS if key in values]
    if strategy != STRATEGY:
        if given:
            raise _wrong(
                name, f"{given[0]} does not go with {strategy}", f"use incremental_strategy={STRATEGY!r}"
            )
        return None
    key = read_columns(name, "affected_key", values.get("affected_key")) or primary_key
    by = []
    for table, said in read_mapping(name, "affected_by", values.get("affected_by")).items():
        expressions = tuple(map(str, said)) if isinstance(said, list | tuple) else (str(said),)
        if len(expressions) != len(key):
            raise _wrong(
                name,
                f"affected_by of {table} gives {len(expressions)} expressions for {len(key)} columns of the key",
                f"give one expression for each of {', '.join(key)}",
            )
        by.append((str(table), expressions))
    return Affected(key, tuple(by), _read_limit(name, values.get("affected_limit")))


def _read_limit(name: str, value: object) -> float:
    if value is None:
        return _LIMIT
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise _wrong(name, f"affected_limit {value!r} is no share", "write a number from 0 to 1")
    return float(value)


def _wrong(name: str, what: str, fix: str) -> FixRequest:
    return FixRequest(
        "TS1837", f"model {name}: {what}", why="its config does not say which keys a change affects", fix=fix
    )
