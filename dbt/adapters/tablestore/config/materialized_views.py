"""materialized='materialized_view': a table that equals its query after each run, kept by the strategy changed_keys.

WHY        nothing runs between dbt runs, so it is as fresh as its last `dbt run`. What follows changes needs to know
           what a row of the query is: unique_key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tablestore_engine.api import FixRequest

MATERIALIZED_VIEW = "materialized_view"
_STRATEGY = "changed_keys"


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
    return {**config, "materialized": "incremental", "incremental_strategy": _STRATEGY}
