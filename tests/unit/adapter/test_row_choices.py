"""Config keys that decide which row of a key wins: each has a decision for each strategy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.tablestore.config.model_config import OWN_KEYS, STRATEGIES, read_settings
from dbt.adapters.tablestore.config.row_choices import (
    NEUTRAL_OPTIONS,
    RETRACTIONS,
    ROW_CHOICES,
    Use,
)
from dbt.adapters.tablestore.plan.build_plan import Situation, plan_build
from dbt.adapters.tablestore.plan.layout_changes import ModelLayout
from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.options import OPTIONS, Scope

GIVEN: dict[str, Any] = {
    "sequence_field": "at", "merge_engine": "first-row", "ignore_delete": True, "duplicates": "last",
    "ignore_update_before": True, "rowkind_field": "op",
    "merge_update_columns": "v",
    "merge_exclude_columns": "v", "delete_when": "v = 1", "incremental_predicates": ["v > 1"],
}  # fmt: skip
# keys of ours that say where rows lie, when and where they go: never which row of a key wins
OTHERS = {
    "primary_key", "partition_by", "buckets", "changelog_producer", "log_system", "log_consistency", "log_format",
    "log_key_format", "log_ignore_delete", "log_changelog_mode", "kafka_topic", "kafka", "table_properties", "publish",
    "affected_by", "affected_key", "affected_limit", "changed_keys", "row_kinds", "max_snapshots_per_batch",
    "output_mode", "dataframe", "contract_changes", "keep_failing_rows", "iceberg_metadata",
    "fields", "default_aggregate_function",  # read by merge engines, which are decided
}  # fmt: skip
KEYS: dict[str, dict[str, Any]] = {
    "append": {},
    "delete+insert": {"primary_key": "id"},
    "insert_overwrite": {"unique_key": ["id", "p"], "partition_by": "p"},
}


def test_every_config_key_and_strategy_has_a_decision() -> None:
    """A new key or strategy fails here until it is decided; so does an option by which rows of a key are merged."""
    assert set(OWN_KEYS) - OTHERS <= set(ROW_CHOICES) == set(GIVEN)
    assert all(set(uses) == {*STRATEGIES, RETRACTIONS} for uses in ROW_CHOICES.values())
    merging = {key for key, one in OPTIONS.items() if one.scope is Scope.MERGE}
    no_choice = {
        "sequence.field.sort-order", "changelog-producer", "changelog-producer.row-deduplicate",
        "changelog-producer.row-deduplicate-ignore-fields",
        "deletion-vectors.enabled", "deletion-vectors.bitmap64", "write-only",
        "fields.default-aggregate-function", "aggregation.remove-record-on-delete",  # read by merge engines
        "partial-update.remove-record-on-delete", "partial-update.remove-record-on-sequence-group",
        *(key for key in OPTIONS if key.startswith("fields.<column>.")),
    }  # fmt: skip
    assert merging - no_choice <= set(NEUTRAL_OPTIONS)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("key", ROW_CHOICES)
def test_config_key_against_its_strategy_is_refused(key: str, strategy: str) -> None:
    """A key is refused exactly where the table says so (merge_engine and sequence_field need a key)."""
    config = {
        "materialized": "incremental",
        "incremental_strategy": strategy,
        **KEYS.get(strategy, {"unique_key": "id"}),
    }
    needs_key = key in ("sequence_field", "merge_engine") and strategy == "append"
    if ROW_CHOICES[key][strategy] is Use.REFUSED or needs_key:
        with pytest.raises(TablestoreError, match="TS1823"):
            read_settings("m", {**config, key: GIVEN[key]}, None)
    else:
        settings = read_settings("m", {**config, key: GIVEN[key]}, None)
        refused = ROW_CHOICES[key][RETRACTIONS] is Use.REFUSED
        assert settings.find_refused(RETRACTIONS) == (key if refused else None)


@pytest.mark.parametrize("option", NEUTRAL_OPTIONS)
def test_table_with_another_rule_for_rows_stops_changed_keys(option: str) -> None:
    """TS2010: a table that was made with sequence_field, or got duplicates=last, would keep it without a word."""
    config = {"materialized": "incremental", "incremental_strategy": "changed_keys", "unique_key": "id"}
    settings, columns = read_settings("m", config, None), (("id", "bigint"),)
    known = Situation("demo.m", "select 1 as id", columns, table_exists=True, table_columns=columns)
    plan_build(settings, replace(known, table_layout=ModelLayout(("id",))))
    with pytest.raises(FixRequest, match="TS2010"):
        plan_build(settings, replace(known, table_layout=ModelLayout(("id",), options={option: "last"})))
