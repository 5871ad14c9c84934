"""What a model, seed or snapshot asks for, read and checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.tablestore.config.contract_and_docs import read_comments, read_contract
from dbt.adapters.tablestore.config.keyless_models import is_replaced
from dbt.adapters.tablestore.config.keys_of_other_adapters import IgnoredKeys
from dbt.adapters.tablestore.config.materialized_views import as_built
from dbt.adapters.tablestore.config.model_config import read_settings
from dbt.adapters.tablestore.credentials import log_settings
from dbt.adapters.tablestore.model_graph import check_topics
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.write.dbt_snapshots import snapshot_settings
from tablestore_engine.spi import BROKERS


def read_model_settings(
    model: Mapping[str, Any],
    nodes: Mapping[str, Any],
    config: Any,  # noqa: ANN401 - dbt's untyped config
    ignored: IgnoredKeys,
) -> ModelSettings:
    """`config`: of the invocation; `ignored` says which keys have no effect. Raises TS1810-TS1825."""
    if model.get("resource_type") == "snapshot":
        return snapshot_settings(model)
    found, name = as_built(model), str(model["name"])
    brokers = log_settings(config.credentials).get(BROKERS)
    contract = read_contract(model)
    if contract.primary_key and not (found.get("primary_key") or found.get("unique_key")):
        found = {**found, "primary_key": list(contract.primary_key)}
    if is_replaced(model):
        found = {**found, "materialized": "table"}
    ignored.tell(name, found)
    table = read_settings(name, found, brokers)
    if dict(table.options).get("log.system") == "kafka":
        check_topics(nodes, str(model["unique_id"]), dict(table.options).get("kafka.topic"))
    comment, column_comments = read_comments(model)
    return ModelSettings(
        str(model["unique_id"]), table, contract, comment, tuple(sorted(column_comments.items()))
    )
