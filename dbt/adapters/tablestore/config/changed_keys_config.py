"""The config of incremental_strategy='changed_keys', and of materialized='materialized_view', which is kept by it.

WHY        nothing runs between dbt runs, so such a view is as fresh as its last `dbt run`. What follows changes needs
           to know what a row of the query is: unique_key.
INVARIANT  nothing here can make a model wrong: `affected_by` counts only where the plan proves nothing, and is then
           named in a warning of each run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dbt.adapters.tablestore.config.value_shapes import read_choice, read_columns, read_mapping
from tablestore_engine.api import FixRequest

STRATEGY = "changed_keys"
MATERIALIZED_VIEW = "materialized_view"
_LIMIT = 0.3
_KEYS = ("affected_by", "affected_key", "affected_limit", "changed_keys")
_CHOICES = ("fallback", "volatile", "strategy")


class Way(StrEnum):
    """How a run computes its rows, in the order of preference."""

    DELTAS = "deltas"
    KEYS = "affected keys"
    WHOLE = "all rows"


CHEAPEST = "cheapest"
_WAYS = {
    CHEAPEST: (Way.DELTAS, Way.KEYS, Way.WHOLE),
    "deltas": (Way.DELTAS, Way.KEYS),
    "affected_keys": (Way.KEYS,),
    "all_rows": (Way.WHOLE,),
}
STRATEGIES = tuple(_WAYS)
ROWS_ALWAYS_FOLLOWED = 10_000  # so many changed rows are followed whatever share of the input they are


@dataclass(frozen=True)
class Affected:
    """`primary_key`: of the model's table.

    `by`: input (table, or schema.table) → one SQL expression over its columns for each column of `key`.

    `limit`: share of the rows of an input; where more changed (and more than ROWS_ALWAYS_FOLLOWED), all rows are
    compared. `is_strict`: a query that cannot be restricted to keys is an error. `allows_volatile`: functions like
    current_date() may be used; a row then has the value of the run that evaluated it. `strategy`: one of STRATEGIES.
    """

    key: tuple[str, ...]
    primary_key: tuple[str, ...]
    by: tuple[tuple[str, tuple[str, ...]], ...] = ()
    limit: float = _LIMIT
    is_strict: bool = False
    allows_volatile: bool = False
    strategy: str = CHEAPEST

    @property
    def ways(self) -> tuple[Way, ...]:
        """Strategies that the config allows; a query that has none of them is computed over all rows."""
        return _WAYS[self.strategy]

    def find(self, table: str) -> tuple[str, ...] | None:
        """The expressions of an input (schema.table); None when it is not named. Names have no case."""
        named = {name.lower(): expressions for name, expressions in self.by}
        return named.get(table.lower(), named.get(table.lower().partition(".")[2]))

    def text(self) -> str:
        """What the rows depend on: another text is another model."""
        return json.dumps([self.key, sorted(self.by), self.allows_volatile])


def read_affected(
    name: str, values: Mapping[str, Any], primary_key: tuple[str, ...], strategy: str
) -> Affected | None:
    """None for other strategies. Raises FixRequest TS1837, TS1811."""
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
    choices = _read_choices(name, values.get("changed_keys"))
    return Affected(
        key,
        primary_key,
        tuple(by),
        _read_limit(name, values.get("affected_limit")),
        is_strict=read_choice(name, "fallback", choices, ("warn", "error"), "warn") == "error",
        allows_volatile=read_choice(name, "volatile", choices, ("refused", "allowed"), "refused")
        == "allowed",
        strategy=read_choice(name, "strategy", choices, STRATEGIES, CHEAPEST),
    )


def as_built(model: Mapping[str, Any]) -> Mapping[str, Any]:
    """A model's config; of a materialized view that of its table. Raises FixRequest TS1881 without a key."""
    config: Mapping[str, Any] = model["config"]
    if config.get("materialized") != MATERIALIZED_VIEW:
        return config
    if not (config.get("unique_key") or config.get("primary_key")):
        raise FixRequest(
            "TS1881",
            f"materialized view {model['name']} has no key",
            why="a run evaluates the query for the keys that changed; unique_key says what identifies a row of it",
            fix="set unique_key to the columns that identify a row, or use materialized='table'",
        )
    return {**config, "materialized": "incremental", "incremental_strategy": STRATEGY}


def _read_choices(name: str, value: object) -> Mapping[str, Any]:
    choices = read_mapping(name, "changed_keys", value)
    strange = sorted(set(choices) - set(_CHOICES))
    if strange:
        raise _wrong(name, f"changed_keys has no setting {strange[0]!r}", f"use one of {', '.join(_CHOICES)}")
    return choices


def _read_limit(name: str, value: object) -> float:
    if value is None:
        return _LIMIT
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise _wrong(name, f"affected_limit {value!r} is no share", "write a number from 0 to 1")
    return float(value)


def _wrong(name: str, what: str, fix: str) -> FixRequest:
    return FixRequest("TS1837", f"model {name}: {what}", why="the config of changed_keys is wrong", fix=fix)
