"""materialized='tablestore' without a key: a table that each run replaces, unless the model says that it grows.

WHY        such a model is its full query, as one of dbt's `table`; appended, each run would double its rows
           (decision 0097).
INVARIANT  is_incremental() is false in a model whose rows are replaced: its query is then always the full one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.tablestore.config.contract_and_docs import read_contract
from dbt.adapters.tablestore.config.model_config import INCREMENTAL
from dbt.adapters.tablestore.model_graph import nested
from tablestore_engine.api import FixRequest

_GROWS_BY_KEY = ("primary_key", "unique_key", "incremental_strategy")
_GROWS_BY_MACRO = frozenset({"is_incremental", "changes"})


def is_replaced(model: Mapping[str, Any]) -> bool:
    """Whether a run replaces the rows of a model of this materialization: it has neither a key nor a strategy, and its
    text calls neither is_incremental() nor changes().
    """
    config = model.get("config") or {}
    if config.get("materialized") != "tablestore" or model.get("resource_type") != "model":
        return False
    given = {**nested(config), **{k: v for k, v in config.items() if v}}
    if any(given.get(key) for key in _GROWS_BY_KEY) or read_contract(model).primary_key:
        return False
    called = (model.get("depends_on") or {}).get("macros") or ()
    return _GROWS_BY_MACRO.isdisjoint(str(one).rsplit(".", maxsplit=1)[-1] for one in called)


def adds_rows(model: Mapping[str, Any]) -> bool:
    """Whether later runs of a model add to its table, or upsert."""
    return model["config"]["materialized"] in INCREMENTAL and not is_replaced(model)


def refuse_changes(name: str) -> FixRequest:
    """TS2072: changes() is called by a macro of the project, so the model's text does not say that it grows."""
    return FixRequest(
        "TS2072",
        f"model {name} reads changes(), and each of its runs would replace all rows",
        why="materialized='tablestore' without a key or a strategy is a table that is replaced; changes() is in a "
        "macro, and not in the model",
        fix="set unique_key, or incremental_strategy='append' to add the rows of each run",
    )
