"""Former names of the Python API: they work until the release after 1.11, with a DeprecationWarning.

CHANGELOG.md lists them. A name that moved to `tablestore_engine.spi` is read from the module that defines it: `spi`
is above `api`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
# module -> names of it that tablestore_engine.api had and tablestore_engine.spi has
_MOVED_TO_SPI: dict[str, tuple[str, ...]] = {
    "tablestore_engine.api.changed_keys": ("ChangedKeys",),
    "tablestore_engine.api.database_sync": ("SyncReport", "SyncSpec", "sync_database"),
    "tablestore_engine.api.results": ("StagedInfo",),
    "tablestore_engine.api.stateful_streams": ("StatefulRun", "StatefulStreams"),
    "tablestore_engine.catalog.orphan_folders": ("OrphanFolder",),
    "tablestore_engine.catalog.read_log": ("ReadLog", "TableRead"),
    "tablestore_engine.devservers.kafka_connect": ("find_connect", "start_connect", "stop_connect"),
    "tablestore_engine.display": ("shown",),
    "tablestore_engine.fileio.stores": ("local_folder",),
    "tablestore_engine.log.kafka.client_settings": (
        "BROKERS",
        "KAFKA_CONFIG_ENV",
        "KAFKA_ENV",
        "client_settings",
        "read_settings",
    ),
    "tablestore_engine.log.sink": ("LogPosition", "LogWriter"),
    "tablestore_engine.postgres.connect_rest": ("ConnectInfo", "ConnectorStatus", "connector_status"),
    "tablestore_engine.postgres.database_source": ("DatabaseSource", "parse_source"),
    "tablestore_engine.runtime.interrupts": ("stopped_by_signals",),
    "tablestore_engine.runtime.locks": ("OrderedLock", "Rank"),
    "tablestore_engine.runtime.scratch": ("SCRATCH_ENV",),
    "tablestore_engine.spark.retractions": ("Retractions",),
    "tablestore_engine.spark.stateful_query": ("OutputMode",),
    "tablestore_engine.spark.traced_query": ("AffectedKeys", "FollowedInput", "TracedQuery"),
    "tablestore_engine.sql.changed_tables": ("changed_tables",),
    "tablestore_engine.sql.table_version": ("find_version", "versioned_database"),
    "tablestore_engine.store.expiry.expire_partitions": ("PartitionReport",),
    "tablestore_engine.store.metadata.source_positions": ("PositionStep", "encode_steps", "steps_of"),
    "tablestore_engine.store.orphan_files.clean_orphans": ("DAY_MS", "OrphanReport"),
    "tablestore_engine.store.rows.row_filter": ("RowFilter",),
    "tablestore_engine.store.write.requested_compaction": ("FileTotals",),
    "tablestore_engine.stream.changes_input": ("ChangesInput", "TABLE_SOURCE"),
    "tablestore_engine.stream.consumer_lag": ("ConsumerFacts",),
    "tablestore_engine.stream.startup_mode": ("StartupMode",),
    "tablestore_engine.stream.stream_lag": ("StreamLag",),
    "tablestore_engine.warehouse.gate.gate_rule": (
        "GateBook",
        "Outcome",
        "Staged",
        "Verdict",
        "World",
        "bound_group",
        "explain",
        "find_obstacle",
        "order_group",
        "pick_group",
        "short_name",
    ),
    "tablestore_engine.warehouse.gate.gatekeeper": (
        "Gatekeeper",
        "PENDING",
        "PUBLISHED",
        "Publication",
        "REFUSED",
    ),
    "tablestore_engine.warehouse.gate.stored_gates": ("stage_properties",),
    "tablestore_engine.warehouse.relations.relation_list": ("DAMAGED", "RelationInfo", "describe_damage"),
}
# former name -> (its name in tablestore_engine.spi, the module that defines it, its name there)
FORMER_NAMES: dict[str, tuple[str, str, str]] = {
    name: (name, module, name) for module, names in _MOVED_TO_SPI.items() for name in names
} | {
    "LeftoverFolder": ("OrphanFolder", "tablestore_engine.catalog.orphan_folders", "OrphanFolder"),
    "STATE_POSITION": ("STATE_POSITION", "tablestore_engine.warehouse.streaming_state_files", "POSITION"),
    "StartMode": ("StartupMode", "tablestore_engine.stream.startup_mode", "StartupMode"),
}


def find_former(name: str) -> object:
    """The object that a former name of `tablestore_engine.api` means; warns the caller. Raises AttributeError."""
    if name not in FORMER_NAMES:
        raise AttributeError(f"module 'tablestore_engine.api' has no attribute {name!r}")
    now, module, defined = FORMER_NAMES[name]
    warnings.warn(
        f"tablestore_engine.api.{name} is deprecated: use tablestore_engine.spi.{now}",
        DeprecationWarning,
        stacklevel=3,
    )
    return getattr(import_module(module), defined)


def former_method(former: str, now: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """A method under its former name."""

    @wraps(now)
    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        warnings.warn(f"{former} is deprecated: use {now.__name__}", DeprecationWarning, stacklevel=2)
        return now(*arguments, **named)

    return call
