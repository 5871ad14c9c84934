"""A model's config: every accepted form, and every refusal with its code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.tablestore.config.keys_of_other_adapters import explain_ignored
from dbt.adapters.tablestore.config.model_config import OWN_KEYS, TableSettings, read_settings
from dbt.adapters.tablestore.config.streaming_keys import Streaming
from dbt.adapters.tablestore.credentials import TablestoreCredentials
from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.options import OPTIONS
from tablestore_engine.spi import OutputMode

KEYED: Mapping[str, Any] = {"materialized": "tablestore", "primary_key": ["order_id"]}
LATER: Mapping[str, Any] = {"materialized": "incremental"}
LOGGED: Mapping[str, Any] = {**KEYED, "log_system": "kafka", "kafka_topic": "orders"}


def read(config: Mapping[str, Any], brokers: str | None = "b:9092") -> TableSettings:
    """The settings of a model called orders."""
    return read_settings("orders", config, brokers)


def test_every_key_of_the_design_arrives_as_a_setting_or_an_option() -> None:
    """Every key at once, its partition column in the key, is understood completely."""
    settings = read(
        {
            "materialized": "tablestore",
            "primary_key": ["order_id", "dt"],
            "partition_by": ["dt"],
            "buckets": 4,
            "merge_engine": "deduplicate",
            "sequence_field": "updated_at",
            "changelog_producer": "lookup",
            "log_system": "kafka",
            "log_consistency": "transactional",
            "log_format": "debezium-json",
            "log_key_format": "avro",
            "log_ignore_delete": True,
            "log_changelog_mode": "all",
            "kafka_topic": "orders",
            "kafka": {"partitions": 3},
            "table_properties": {"commit.max-retries": "7"},
            "delete_when": "op = 'd'",
            "publish": "on_tests",
            "duplicates": "last",
            "iceberg_metadata": True,
        }
    )
    assert settings.primary_key == ("order_id", "dt")
    assert settings.partition_by == ("dt",)
    assert (settings.strategy, settings.delete_when, settings.publish) == ("merge", "op = 'd'", "on_tests")
    assert dict(settings.options) == {
        "bucket": "4",
        "changelog-producer": "lookup",
        "kafka.topic": "orders",
        "log.changelog-mode": "all",
        "log.consistency": "transactional",
        "log.format": "debezium-json",
        "log.ignore-delete": "true",
        "log.key.format": "avro",
        "log.system": "kafka",
        "log.system.partitions": "3",
        "merge-engine": "deduplicate",
        "metadata.iceberg.storage": "table-location",
        "sequence.field": "updated_at",
        "commit.max-retries": "7",
        "tablestore.duplicates": "last",
    }
    assert set(dict(settings.options)) <= set(OPTIONS)


@pytest.mark.parametrize("key", OWN_KEYS)
def test_every_own_key_may_stand_under_meta(key: str) -> None:
    """No key works at the top level only."""
    values = {
        "primary_key": ["id"],
        "partition_by": ["id"],
        "buckets": 2,
        "kafka": {"compression.type": "zstd"},
        "table_properties": {"write-only": "true"},
        "incremental_predicates": ["a > 1"],
        "merge_update_columns": ["a"],
        "merge_exclude_columns": ["b"],
        "publish": "manual",
        "duplicates": "last",
        "iceberg_metadata": True,
        "sequence_field": "v",
        "delete_when": "x",
        "merge_engine": "deduplicate",
        "fields": {"v": {"stats_mode": "full"}},
        "default_aggregate_function": "sum",
        "ignore_delete": True,
        "ignore_update_before": True,
        "rowkind_field": "op",
        "changelog_producer": "lookup",
        "log_system": "kafka",
        "log_consistency": "transactional",
        "log_format": "debezium-json",
        "log_key_format": "json",
        "log_ignore_delete": True,
        "log_changelog_mode": "upsert",
        "kafka_topic": "t",
        "affected_by": {"customers": "customer_id"},
        "affected_key": ["id"],
        "affected_limit": 0.5,
        "changed_keys": {"fallback": "error"},
        "row_kinds": "all",
        "max_snapshots_per_batch": 7,
        "output_mode": "append",
        "dataframe": "polars",
        "contract_changes": "allowed",
        "keep_failing_rows": False,
    }
    logged = {"log_system": "kafka", "kafka_topic": "t"} if key.startswith(("log_", "kafka")) else {}
    if key.startswith(("affected_", "changed_keys")):
        logged = {"incremental_strategy": "changed_keys"}
    kind = "streaming" if key in ("row_kinds", "max_snapshots_per_batch", "output_mode") else "tablestore"
    top = {"materialized": kind, "primary_key": ["id"], **logged, key: values[key]}
    nested = {
        "materialized": kind,
        "meta": {"tablestore": {k: v for k, v in top.items() if k != "materialized"}},
    }
    if key in top:
        assert read(top) == read(nested)


@pytest.mark.parametrize(
    ("config", "strategy", "key", "delete_key"),
    [
        ({}, "append", (), ()),
        ({"unique_key": "id"}, "merge", ("id",), ()),
        ({"unique_key": ["a", "b", "a"]}, "merge", ("a", "b"), ()),
        ({"unique_key": ""}, "append", (), ()),
        ({"unique_key": []}, "append", (), ()),
        ({"primary_key": "id", "unique_key": ["id"]}, "merge", ("id",), ()),
        ({"unique_key": "id", "incremental_strategy": "delete+insert"}, "delete+insert", (), ("id",)),
        (
            {"primary_key": "a", "unique_key": "b", "incremental_strategy": "delete+insert"},
            "delete+insert",
            ("a",),
            ("b",),
        ),
        ({"unique_key": "id", "incremental_strategy": "append"}, "append", (), ()),
        ({"partition_by": "dt", "incremental_strategy": "insert_overwrite"}, "insert_overwrite", (), ()),
    ],
)
def test_keys_and_strategy(
    config: Mapping[str, Any], strategy: str, key: tuple[str, ...], delete_key: tuple[str, ...]
) -> None:
    """unique_key is the primary key, but for delete+insert, where rows of one key may be several."""
    settings = read({"materialized": "incremental", **config})
    assert (settings.strategy, settings.primary_key, settings.delete_key) == (strategy, key, delete_key)


def test_key_without_the_partition_column_is_the_key_of_the_table() -> None:
    """`unique_key='id', partition_by='day'`: one row for each id, whichever day it has."""
    shape = {"materialized": "incremental", "unique_key": "id", "partition_by": "day"}
    assert (read(shape).primary_key, read(shape).partition_by) == (("id",), ("day",))
    assert read({**shape, "incremental_strategy": "delete+insert"}).delete_key == ("id",)


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"primarykey": ["id"]}, "TS1810"),
        ({"partitioned_by": ["dt"]}, "TS1810"),
        ({"log_sytem": "kafka"}, "TS1810"),
        ({"meta": {"tablestore": {"anything": 1}}}, "TS1810"),
        ({"primary_key": 5}, "TS1811"),
        ({"primary_key": [1]}, "TS1811"),
        ({"buckets": "many"}, "TS1811"),
        ({"buckets": "auto", "table_properties": {"bucket": 3}}, "TS1812"),
        ({"buckets": "dynamic", "table_properties": {"bucket": 3}}, "TS1812"),
        ({"buckets": -1}, "TS1811"),
        ({"buckets": 0}, "TS1811"),
        ({"publish": "on_test"}, "TS1811"),
        ({"kafka": "b:9092"}, "TS1811"),
        ({"delete_when": ""}, "TS1811"),
        ({"meta": {"tablestore": "x"}}, "TS1811"),
        ({"primary_key": "a", "unique_key": "b"}, "TS1812"),
        ({"buckets": 2, "meta": {"tablestore": {"buckets": 3}}}, "TS1812"),
        ({"buckets": 2, "table_properties": {"bucket": 3}}, "TS1812"),
        ({"log_consistency": "transactional"}, "TS1813"),
        ({"kafka_topic": "t"}, "TS1813"),
        ({"kafka": {"partitions": 1}}, "TS1813"),
        ({"log_system": "kafka", "kafka_topic": "t", "log_consistency": "eventual"}, "TS1814"),
        ({"log_system": "kafka"}, "TS1815"),
        ({"kafka": {"sasl.password": "x"}, **LOGGED}, "TS1818"),
        ({"table_properties": {"kafka.ssl.key.location": "x"}}, "TS1818"),
        ({**KEYED, "fields": {"n": {"aggregate": "sum"}}}, "TS1811"),
        ({**KEYED, "fields": {"n": {"aggregate_function": "summ"}}}, "TS1007"),
        ({**KEYED, "fields": {"n": "sum"}}, "TS1811"),
        ({**LATER, "incremental_strategy": "upsert"}, "TS1824"),
        ({**LATER, "incremental_strategy": "merge"}, "TS1823"),
        ({**LATER, "incremental_strategy": "insert_overwrite"}, "TS1823"),
        ({**LATER, "incremental_strategy": "append", "primary_key": "id"}, "TS1823"),
        ({**LATER, "unique_key": "id", "matched_condition": "a > b"}, "TS1858"),
        ({**LATER, "unique_key": "id", "skip_matched_step": True}, "TS1858"),
        ({"row_filter": {"function": "f"}}, "TS1858"),
        ({"delete_when": "x"}, "TS1823"),
        ({"sequence_field": "v"}, "TS1823"),
        ({**KEYED, "merge_update_columns": "a", "merge_exclude_columns": "b"}, "TS1823"),
        ({**KEYED, "merge_update_columns": "a", "incremental_strategy": "append"}, "TS1823"),
        ({**KEYED, "merge_engine": "dedup"}, "TS1007"),
        ({**KEYED, "log_system": "kafkaa"}, "TS1007"),
        ({"table_properties": {"target-file-sise": "1 mb"}}, "TS1006"),
        ({"table_properties": {"target-file-size": "big"}}, "TS1001"),
    ],
)
def test_a_wrong_config_is_refused_by_its_code(config: Mapping[str, Any], code: str) -> None:
    """Unknown, misshapen, contradictory and unbuilt configs each give their own error."""
    with pytest.raises(TablestoreError) as caught:
        read(config)
    assert caught.value.code == code
    assert "orders" in str(caught.value) or code.startswith("TS10")


def test_brokers_are_the_profiles() -> None:
    """The profile names none: TS1816. A model that names some is TS1071, and the table never holds an address."""
    for config in (LOGGED, {**LOGGED, "kafka": {"compression.type": "zstd"}}):
        with pytest.raises(FixRequest, match="TS1816"):
            read(config, brokers=None)
    with pytest.raises(FixRequest, match="TS1071"):
        read({**LOGGED, "kafka": {"bootstrap.servers": "c:1"}})
    assert not [text for text in dict(read(LOGGED).options).values() if "9092" in text]


@pytest.mark.parametrize(
    "config",
    [
        {"kafka": {"sasl.password": "hunter2"}},
        {"kafka": {"SASL_PASSWORD": "hunter2"}},
        {"table_properties": {"fs.azure.account.key.acme": "hunter2"}},
        {"tblproperties": {"ssl.keystore.key": "hunter2"}},
        {"+sasl_password": "hunter2"},
        {"meta": {"tablestore": {"kafka": {"sslKeyPem": "hunter2"}}}},
        {"meta": {"tablestore": {"tblproperties": {"s3.secret-key": "hunter2"}}}},
    ],
)
def test_a_secret_is_refused_while_dbt_parses(config: Mapping[str, Any]) -> None:
    """dbt passes each config through translate_aliases before any manifest exists; the value is not in the message."""
    with pytest.raises(CompilationError, match="TS1818") as caught:
        TablestoreCredentials.translate_aliases(dict(config))
    assert "hunter2" not in str(caught.value)


def test_configs_without_secrets_and_profiles_pass_the_parser() -> None:
    """Keys of others stay; a profile may hold secrets."""
    config = {
        "unique_key": "id",
        "max_tokens": 3,
        "kafka": {"partitions": 2},
        "meta": {"owner": "password team"},
    }
    assert TablestoreCredentials.translate_aliases(dict(config)) == config
    profile = {"type": "tablestore", "warehouse": "w", "schema": "s", "password": "x"}
    assert TablestoreCredentials.translate_aliases(dict(profile)) == profile


def test_the_nearest_key_is_named() -> None:
    """The message tells what to write."""
    with pytest.raises(FixRequest, match="'partition_by'"):
        read({"partitioned_by": ["dt"]})


@pytest.mark.parametrize(
    "key", ["sort", "dist", "file_format", "location_root", "my_team", "event_time", "unique_key"]
)
def test_keys_of_others_are_left_alone(key: str) -> None:
    """Packages and other adapters keep their own config keys."""
    read({key: "x", "materialized": "table"})


def test_an_eventual_log_is_an_option_of_the_table() -> None:
    """With a key; without one it is TS1814."""
    settings = read({**LOGGED, "log_consistency": "eventual", "primary_key": ["id"]})
    assert dict(settings.options)["log.consistency"] == "eventual"


def test_no_secret_reaches_the_message() -> None:
    """The refusal of a secret does not print it."""
    with pytest.raises(FixRequest) as caught:
        read({**LOGGED, "kafka": {"sasl.password": "hunter2"}})
    assert "hunter2" not in str(caught.value)


def test_on_schema_change_of_meta_wins_over_dbts_default() -> None:
    """dbt always fills in on_schema_change='ignore' at the top level, which is no second statement."""
    config = {"on_schema_change": "ignore", "meta": {"tablestore": {"on_schema_change": "fail"}}}
    assert read(config).on_schema_change == "fail"


def test_needed_columns_are_keys_partitions_and_sequence() -> None:
    """All columns whose absence must stop the run are listed once."""
    settings = read(
        {**KEYED, "primary_key": ["order_id", "dt"], "partition_by": "dt", "sequence_field": ["v", "dt"]}
    )
    assert settings.needed_columns == ("order_id", "dt", "v")


@pytest.mark.parametrize(
    "strategy", ["merge", "insert_overwrite", "append", "microbatch", "delete+insert", "own"]
)
@pytest.mark.parametrize("materialized", ["table", "seed"])
def test_a_projects_strategy_is_nothing_to_a_table(materialized: str, strategy: str) -> None:
    """+incremental_strategy on a whole project: only incremental models need what it needs."""
    settings = read({"materialized": materialized, "incremental_strategy": strategy, "primary_key": "id"})
    assert settings.primary_key == ("id",)
    read({"materialized": materialized, "incremental_strategy": strategy})


def test_ignored_keys_are_explained_and_unset_ones_are_not() -> None:
    """Only what a model really sets is worth a word."""
    config = {
        "file_format": "delta",
        "cluster_by": [],
        "zorder": None,
        "auto_liquid_cluster": False,
        "my_team": "x",
    }
    assert list(explain_ignored(config)) == ["file_format"]


def test_what_affects_a_key() -> None:
    """The key is the primary key if nothing else is said; an input is found by its name or with its schema."""
    top = {"materialized": "incremental", "incremental_strategy": "changed_keys", "unique_key": ["a", "b"]}
    settings = read({**top, "affected_by": {"Orders": ["x", "y + 1"], "other.items": ["p", "q"]}})
    assert settings.affected is not None
    assert (settings.affected.key, settings.affected.limit) == (("a", "b"), 0.3)
    assert settings.affected.find("demo.orders") == ("x", "y + 1")
    assert settings.affected.find("other.items") == ("p", "q")
    assert settings.affected.find("demo.items") is None
    one = read({**top, "affected_key": "a", "affected_limit": 0}).affected
    assert one is not None
    assert (one.key, one.by, one.limit) == (("a",), (), 0.0)
    assert (one.is_strict, one.allows_volatile) == (False, False)
    more = read({**top, "changed_keys": {"fallback": "error", "volatile": "allowed"}}).affected
    assert more is not None
    assert (more.is_strict, more.allows_volatile) == (True, True)
    assert len({settings.affected.text(), one.text(), more.text()}) == 3


def test_a_streaming_model_says_how_it_follows() -> None:
    """Its words arrive; by default rows are appended or put by key, in one step."""
    config = {"materialized": "streaming", "unique_key": "id"}
    found = read(config)
    keyed = (OutputMode.UPDATE, OutputMode.APPEND)
    assert (found.strategy, found.streaming) == ("merge", Streaming(output_modes=keyed))
    more = {"row_kinds": "all", "max_snapshots_per_batch": 5, "on_configuration_change": "fail"}
    assert read({**config, **more}).streaming == Streaming("all", 5, "fail", keyed)
    plain = read({"materialized": "streaming"})
    assert (plain.strategy, plain.streaming) == ("append", Streaming())
    final = read({**config, "output_mode": "append"}).streaming
    assert final is not None
    assert final.output_modes == (OutputMode.APPEND,)


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"materialized": "incremental", "row_kinds": "all"}, "TS1842"),
        ({"materialized": "table", "max_snapshots_per_batch": 3}, "TS1842"),
        ({"materialized": "streaming", "max_snapshots_per_batch": 0}, "TS1842"),
        ({"materialized": "streaming", "max_snapshots_per_batch": True}, "TS1842"),
        (
            {"materialized": "streaming", "unique_key": "id", "incremental_strategy": "delete+insert"},
            "TS1842",
        ),
        ({"materialized": "streaming", "row_kinds": "upserts"}, "TS1811"),
        ({"materialized": "streaming", "output_mode": "update"}, "TS1842"),
        ({"materialized": "streaming", "output_mode": "complete"}, "TS1811"),
        ({"materialized": "incremental", "output_mode": "append"}, "TS1842"),
        ({"materialized": "streaming", "on_configuration_change": "sometimes"}, "TS1811"),
    ],
)
def test_words_that_mean_nothing_to_a_stream_are_refused(config: Mapping[str, Any], code: str) -> None:
    """Here or elsewhere."""
    with pytest.raises(FixRequest) as caught:
        read(config)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("value", "storage"),
    [(True, "table-location"), (False, "disabled"), ("hadoop-catalog", "hadoop-catalog"), (None, None)],
)
def test_iceberg_metadata_is_a_flag_or_a_place(value: object, storage: str | None) -> None:
    """The table option that the engine reads."""
    settings = read({"iceberg_metadata": value})
    assert dict(settings.options).get("metadata.iceberg.storage") == storage


def test_iceberg_metadata_of_another_shape_is_refused() -> None:
    """A word that is no place."""
    with pytest.raises(FixRequest, match="TS1811"):
        read({"iceberg_metadata": "glue"})


def test_rules_of_columns_are_table_options() -> None:
    """`fields` and the keys for all columns, as the options that the engine reads."""
    settings = read(
        {
            **KEYED,
            "merge_engine": "aggregation",
            "default_aggregate_function": "max",
            "ignore_delete": True,
            "fields": {
                "amount": {"aggregate_function": "sum", "ignore_retract": True, "default_value": 0},
                "at,part": {"sequence_group": ["a", "b"]},
                "tags": {"aggregate_function": "listagg", "distinct": True, "list_agg_delimiter": "; "},
            },
        }
    )
    assert dict(settings.options) == {
        "merge-engine": "aggregation",
        "fields.default-aggregate-function": "max",
        "ignore-delete": "true",
        "fields.amount.aggregate-function": "sum",
        "fields.amount.ignore-retract": "true",
        "fields.amount.default-value": "0",
        "fields.at,part.sequence-group": "a,b",
        "fields.tags.aggregate-function": "listagg",
        "fields.tags.distinct": "true",
        "fields.tags.list-agg-delimiter": "; ",
    }
