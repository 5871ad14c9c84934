"""Which tablestore models each run replaces."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.tablestore.config.keyless_models import adds_rows, is_replaced


def _model(config: dict[str, Any], macros: tuple[str, ...] = (), **more: object) -> dict[str, Any]:
    shown = {"materialized": "tablestore", **config}
    return {
        "name": "m",
        "resource_type": "model",
        "config": shown,
        "columns": {},
        "depends_on": {"macros": list(macros)},
        **more,
    }


KEY = {"type": "primary_key", "columns": ["id"]}
GROWING = (
    _model({"primary_key": "id"}),
    _model({"unique_key": ["id"]}),
    _model({"incremental_strategy": "append"}),
    _model({"meta": {"tablestore": {"primary_key": "id"}}}),
    _model({}, ("macro.dbt_tablestore.is_incremental",)),
    _model({}, ("macro.dbt_tablestore.changes",)),
    _model({"contract": {"enforced": True}}, constraints=[KEY]),
    _model({"materialized": "incremental"}),
)


@pytest.mark.parametrize("model", GROWING)
def test_model_that_says_how_it_grows_is_not_replaced(model: dict[str, Any]) -> None:
    """By a key at any place, a strategy, an incremental branch, changes(), or dbt's own incremental."""
    assert adds_rows(model)
    assert not is_replaced(model)


@pytest.mark.parametrize(
    "config", [{}, {"partition_by": "p"}, {"meta": {"tablestore": {"buckets": 2}}}, {"unique_key": None}]
)
def test_model_without_a_key_is_replaced(config: dict[str, Any]) -> None:
    """Nothing else says that it grows: not a partition, nor a macro of another name."""
    assert is_replaced(_model(config, ("macro.shop.cents",)))
    assert not adds_rows(_model(config))
