"""A model's config, checked once and completely before anything is written.

CHANGE     the meaning of a model config key, and its error text
Steps      1 gather: top level, then meta.tablestore, then aliases  2 spelling and secrets  3 the engine's own check of
           options  4 shapes  5 contradictions  6 what is not built yet
INVARIANT  a key means the same at the top level and under meta.tablestore; given at both it must agree.
INVARIANT  what is not understood is an error: dbt accepts any key silently, we only those far from ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.protocol import AdapterConfig

from dbt.adapters.tablestore.config.changed_keys_config import Affected, read_affected
from dbt.adapters.tablestore.config.field_rules import read_field_options
from dbt.adapters.tablestore.config.keys_of_other_adapters import IGNORED, check_rows_asked
from dbt.adapters.tablestore.config.row_choices import ROW_CHOICES, Use
from dbt.adapters.tablestore.config.secret_keys import ALIASES, refuse_secrets
from dbt.adapters.tablestore.config.streaming_keys import STREAMING, Streaming, read_streaming
from dbt.adapters.tablestore.config.value_shapes import (
    check_flag,
    read_bucket_count,
    read_choice,
    read_columns,
    read_iceberg_storage,
    read_mapping,
    read_predicates,
    read_text,
    read_word,
    text_of,
)
from tablestore_engine.api import FixRequest
from tablestore_engine.spi import check_options

PUBLISH_POLICIES = ("auto", "on_tests", "always", "manual", "all_or_nothing")
INCREMENTAL = ("incremental", "tablestore")  # materializations whose later runs add to the table
STRATEGIES = ("append", "merge", "delete+insert", "insert_overwrite", "microbatch", "changed_keys")
SCHEMA_CHANGES = ("ignore", "append_new_columns", "sync_all_columns", "fail")
# config key -> table option
_OPTION_OF = {
    "merge_engine": "merge-engine",
    "changelog_producer": "changelog-producer",
    "log_system": "log.system",
    "log_consistency": "log.consistency",
    "log_format": "log.format",
    "log_key_format": "log.key.format",
    "log_ignore_delete": "log.ignore-delete",
    "log_changelog_mode": "log.changelog-mode",
    "kafka_topic": "kafka.topic",
    "duplicates": "tablestore.duplicates",
}
_LOG_KEYS = (
    *("log_consistency", "log_format", "log_key_format", "log_ignore_delete", "log_changelog_mode"),
    *("kafka_topic", "kafka"),
)


@dataclass
class TablestoreConfig(AdapterConfig):
    primary_key: str | list[str] | None = None
    partition_by: str | list[str] | None = None
    buckets: int | str | None = None
    merge_engine: str | None = None
    fields: dict[str, Any] | None = None
    default_aggregate_function: str | None = None
    ignore_delete: bool | None = None
    ignore_update_before: bool | None = None
    rowkind_field: str | None = None
    sequence_field: str | list[str] | None = None
    changelog_producer: str | None = None
    log_system: str | None = None
    log_consistency: str | None = None
    log_format: str | None = None
    log_key_format: str | None = None
    log_ignore_delete: bool | None = None
    log_changelog_mode: str | None = None
    kafka_topic: str | None = None
    kafka: dict[str, Any] | None = None
    table_properties: dict[str, Any] | None = None
    delete_when: str | None = None
    publish: str | None = None
    duplicates: str | None = None
    merge_update_columns: str | list[str] | None = None
    merge_exclude_columns: str | list[str] | None = None
    incremental_predicates: str | list[str] | None = None
    affected_by: dict[str, Any] | None = None
    affected_key: str | list[str] | None = None
    affected_limit: float | None = None
    changed_keys: dict[str, Any] | None = None
    row_kinds: str | None = None
    max_snapshots_per_batch: int | None = None
    output_mode: str | None = None
    dataframe: str | None = None
    contract_changes: str | None = None
    keep_failing_rows: bool | None = None
    iceberg_metadata: bool | str | None = None


OWN_KEYS = tuple(key for key in TablestoreConfig.__dataclass_fields__ if not key.startswith("_"))
_SHARED_KEYS = ("unique_key", "incremental_strategy", "on_schema_change", *ALIASES)


@dataclass(frozen=True)
class TableSettings:
    """One model's table: how it lies on disk, how a run writes it, when it is published."""

    materialized: str
    primary_key: tuple[str, ...] = ()
    delete_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    strategy: str = "append"
    on_schema_change: str = "ignore"
    delete_when: str | None = None
    publish: str = "auto"
    update_columns: tuple[str, ...] = ()
    exclude_columns: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
    affected: Affected | None = None
    streaming: Streaming | None = None
    contract_changes: str = "refused"

    @property
    def needed_columns(self) -> tuple[str, ...]:
        """Columns that the query must deliver."""
        sequence = dict(self.options).get("sequence.field", "")
        ordered = (
            *self.primary_key,
            *self.delete_key,
            *(self.affected.key if self.affected else ()),
            *self.partition_by,
            *filter(None, sequence.split(",")),
        )
        return tuple(dict.fromkeys(ordered))

    def find_refused(self, strategy: str) -> str | None:
        """The first config key that the model sets against a strategy of ROW_CHOICES."""
        options = dict(self.options)
        given = {
            "merge_update_columns": self.update_columns,
            "merge_exclude_columns": self.exclude_columns,
            "incremental_predicates": self.predicates,
            "sequence_field": "sequence.field" in options,
            "merge_engine": options.get("merge-engine", "deduplicate") != "deduplicate",
            "ignore_delete": options.get("ignore-delete", "false") != "false",
            "ignore_update_before": options.get("ignore-update-before", "false") != "false",
            "rowkind_field": "rowkind.field" in options,
            "duplicates": options.get("tablestore.duplicates", "refuse") != "refuse",
            "delete_when": self.delete_when,
        }
        refused = (key for key, value in given.items() if value and ROW_CHOICES[key][strategy] is Use.REFUSED)
        return next(refused, None)


def read_settings(name: str, config: Mapping[str, Any], brokers: str | None) -> TableSettings:
    """The checked settings of model `name`; `brokers` is what the profile's log: gives."""
    values = _gather(name, config)
    refuse_secrets(name, values)
    check_rows_asked(name, config)
    check_flag(name, "keep_failing_rows", values.get("keep_failing_rows"))
    materialized = str(config.get("materialized", "table"))
    options = _read_options(name, values)
    check_options(dict(options))
    primary_key, delete_key, strategy = _read_keys(
        name, values, is_incremental=materialized in (*INCREMENTAL, STREAMING)
    )
    settings = TableSettings(
        materialized=materialized,
        primary_key=primary_key,
        delete_key=delete_key,
        partition_by=read_columns(name, "partition_by", values.get("partition_by")),
        options=options,
        strategy=strategy,
        on_schema_change=read_choice(name, "on_schema_change", values, SCHEMA_CHANGES, "ignore"),
        delete_when=read_text(name, "delete_when", values.get("delete_when")),
        publish=read_choice(name, "publish", values, PUBLISH_POLICIES, "auto"),
        update_columns=read_columns(name, "merge_update_columns", values.get("merge_update_columns")),
        exclude_columns=read_columns(name, "merge_exclude_columns", values.get("merge_exclude_columns")),
        predicates=read_predicates(name, values.get("incremental_predicates")),
        affected=read_affected(name, values, primary_key, strategy),
        streaming=read_streaming(name, values, config, strategy, is_keyed=bool(primary_key)),
        contract_changes=read_choice(name, "contract_changes", values, ("refused", "allowed"), "refused"),
    )
    _refuse_contradictions(name, settings, values, brokers)
    return settings


def _gather(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Every given key once, by its main name."""
    meta = config.get("meta") or {}
    nested = read_mapping(
        name, "meta.tablestore", meta.get("tablestore") if isinstance(meta, Mapping) else None
    )
    known = (*OWN_KEYS, *_SHARED_KEYS)
    for key in nested:
        if key not in known:
            raise _unknown_key(name, f"meta.tablestore.{key}", key, cutoff=0.0)
    for key, value in config.items():
        strange = key not in known and key not in _DBT_KEYS and value is not None
        if strange and difflib.get_close_matches(key, OWN_KEYS, n=1, cutoff=0.8):
            raise _unknown_key(name, key, key, cutoff=0.8)
    values: dict[str, Any] = {}
    for source in (config, nested):
        for key in known:
            value = source.get(key)
            if value is None or (key == "on_schema_change" and source is config and key in nested):
                continue
            main = ALIASES.get(key, key)
            if values.setdefault(main, value) != value:
                raise _given_twice(name, main, values[main], value)
    return values


# Keys of dbt-core that stand near one of ours in spelling or are set on every node.
_DBT_KEYS = frozenset({
    "alias", "schema", "database", "tags", "meta", "group", "materialized", "persist_docs", "quoting", "enabled",
    "column_types", "full_refresh", "grants", "docs", "contract", "event_time", "concurrent_batches", "begin",
    "lookback", "batch_size", "access", "freshness", "pre-hook", "post-hook", "unique_key", "sql_header",
    "static_analysis", *IGNORED,
})  # fmt: skip


def _unknown_key(name: str, shown: str, key: str, *, cutoff: float) -> FixRequest:
    near = difflib.get_close_matches(
        key, (*OWN_KEYS, "unique_key", "incremental_strategy"), n=1, cutoff=cutoff
    )
    return FixRequest(
        "TS1810",
        f"model {name} has an unknown config key {shown!r}",
        why=f"the nearest known one is {near[0]!r}",
        fix=f"write {near[0]!r}, or rename the key if it is meant for something else",
    )


def _given_twice(name: str, key: str, first: object, second: object) -> FixRequest:
    return FixRequest(
        "TS1812",
        f"model {name} gives {key!r} twice",
        why=f"once as {first!r}, once as {second!r}",
        fix="give it in one place: config(), or meta.tablestore",
    )


def _read_keys(
    name: str, values: Mapping[str, Any], *, is_incremental: bool
) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """(primary key, key of delete+insert, strategy). unique_key is the primary key, but for the strategies of dbt
    that let several rows have one: append and delete+insert. A project sets its strategy for tables too.
    """
    primary = read_columns(name, "primary_key", values.get("primary_key"))
    unique = read_columns(name, "unique_key", values.get("unique_key"))
    strategy = values.get("incremental_strategy") or ("merge" if primary or unique else "append")
    if strategy not in STRATEGIES and is_incremental:
        macro = f"get_incremental_{strategy}_sql"  # dbt's own words, which packages and tests look for
        near = difflib.get_close_matches(str(strategy), STRATEGIES, n=1, cutoff=0.0)
        raise FixRequest(
            "TS1824",
            f"model {name}: incremental_strategy {strategy!r} is not valid",
            why=f'dbt could not find an incremental strategy macro with the name "{macro}"',
            fix=f"use one of {', '.join(STRATEGIES)}; the nearest is {near[0]!r}",
        )
    if strategy == "append":
        return primary, (), strategy
    if strategy == "delete+insert":
        return primary, unique or primary, strategy
    if primary and unique and set(primary) != set(unique):
        raise _given_twice(name, "primary_key", list(primary), list(unique))
    return primary or unique, (), strategy


def _read_options(name: str, values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Table options of the config, sorted; a property that repeats a key of ours must agree with it."""
    options = {
        str(k): text_of(v)
        for k, v in read_mapping(name, "table_properties", values.get("table_properties")).items()
    }
    named = {option: read_word(name, key, values.get(key)) for key, option in _OPTION_OF.items()}
    named["metadata.iceberg.storage"] = read_iceberg_storage(name, values.get("iceberg_metadata"))
    named["bucket"] = read_bucket_count(name, values.get("buckets"))
    named["sequence.field"] = (
        ",".join(read_columns(name, "sequence_field", values.get("sequence_field"))) or None
    )
    kafka = {
        _kafka_option(str(k)): text_of(v) for k, v in read_mapping(name, "kafka", values.get("kafka")).items()
    }
    for source in (named, kafka, read_field_options(name, values)):
        for option, value in source.items():
            if value is not None and options.setdefault(option, value) != value:
                raise _given_twice(name, option, options[option], value)
    return tuple(sorted(options.items()))


def _kafka_option(key: str) -> str:
    short = {
        "partitions": "log.system.partitions",
        "replication": "log.system.replication",
        "retention": "log.retention",
    }
    if key in short:
        return short[key]
    return key if key.startswith(("kafka.", "log.")) else f"kafka.{key}"


def _refuse_contradictions(
    name: str, settings: TableSettings, values: Mapping[str, Any], brokers: str | None
) -> None:
    options = dict(settings.options)
    logged = options.get("log.system", "none") != "none"
    for key in _LOG_KEYS:
        if key in values and not logged:
            raise FixRequest(
                "TS1813",
                f"model {name} has {key!r} but no log",
                why="log_system is not set",
                fix=f"add log_system='kafka', or remove {key!r}",
            )
    if logged and options.get("log.consistency") == "eventual" and not settings.primary_key:
        raise FixRequest(
            "TS1814",
            f"model {name}: log_consistency='eventual' needs a key",
            why="readers of an eventual log drop repeated changes by the primary key",
            fix="set primary_key, or use log_consistency='transactional'",
        )
    if logged:
        _require_log_target(name, options, brokers)
    _refuse_wrong_strategy(name, settings)


def _require_log_target(name: str, options: Mapping[str, str], brokers: str | None) -> None:
    if "kafka.topic" not in options:
        raise FixRequest(
            "TS1815",
            f"model {name} has log_system='kafka' but no topic",
            why="kafka_topic is not set",
            fix=f"add kafka_topic='{name}'",
        )
    if not brokers:
        raise FixRequest(
            "TS1816",
            f"model {name} has log_system='kafka' but no brokers",
            why="neither profile nor TABLESTORE_KAFKA names any; a model only says which topic is its own",
            fix='set `brokers: "host:9092"` in the profile (`none` means no broker), or TABLESTORE_KAFKA',
        )


def _refuse_wrong_strategy(name: str, settings: TableSettings) -> None:
    grows = settings.materialized in (*INCREMENTAL, STREAMING)
    wrong = _wrong_strategy(settings) if grows else None
    problem = wrong or _wrong_keys(settings)
    if problem is not None:
        raise FixRequest(
            "TS1823", f"model {name}: {problem[0]}", why="the config contradicts itself", fix=problem[1]
        )


def _wrong_keys(settings: TableSettings) -> tuple[str, str] | None:
    """What any table's settings lack or do not go with, and the way out."""
    if settings.update_columns and settings.exclude_columns:
        return "merge_update_columns and merge_exclude_columns exclude each other", "keep one of them"
    if settings.delete_when and not settings.primary_key:
        return "delete_when needs a key", "set primary_key: a delete removes the row of its key"
    if "sequence.field" in dict(settings.options) and not settings.primary_key:
        return "sequence_field needs a key", "set primary_key: it orders the versions of a key"
    if (
        dict(settings.options).get("merge-engine", "deduplicate") != "deduplicate"
        and not settings.primary_key
    ):
        return "merge_engine needs a key", "set primary_key: it merges the versions of a key"
    return None


def _wrong_strategy(settings: TableSettings) -> tuple[str, str] | None:
    """What an incremental model's strategy lacks or does not go with, and the way out."""
    strategy = settings.strategy
    if strategy in ("merge", "changed_keys") and not settings.primary_key:
        return f"{strategy} needs a key", "set primary_key, or use incremental_strategy='append'"
    if strategy == "append" and settings.primary_key:
        keeps = "set unique_key instead of primary_key, which keeps rows of one key apart"
        return "append does not go with a primary key", f"use incremental_strategy='merge', or {keeps}"
    if strategy == "insert_overwrite" and not settings.partition_by:
        return "insert_overwrite needs partitions", "set partition_by, or use materialized='table'"
    refused = settings.find_refused(strategy)
    if refused is not None:
        fix = f"remove {refused}, or use incremental_strategy='merge'"
        return f"{refused} does not go with {strategy}", fix
    return None
