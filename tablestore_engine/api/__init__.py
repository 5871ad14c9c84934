"""The front door: Engine and Table handles, and the values that go in and come out."""

from tablestore_engine.api.changed_keys import ChangedKeys
from tablestore_engine.api.database_sync import SyncReport, SyncSpec, sync_database
from tablestore_engine.api.engine import Engine
from tablestore_engine.api.former_names import warn_former
from tablestore_engine.api.results import ColumnInfo, SqlResult, StagedInfo, TableFacts
from tablestore_engine.api.stateful_streams import StatefulRun, StatefulStreams
from tablestore_engine.api.stream_lags import SourceLag, stream_lags
from tablestore_engine.api.table import Scan, Table
from tablestore_engine.catalog.orphan_folders import OrphanFolder
from tablestore_engine.catalog.read_log import ReadLog, TableRead
from tablestore_engine.datasource.spark_source import TablestoreSource
from tablestore_engine.devservers.kafka_connect import find_connect, start_connect, stop_connect
from tablestore_engine.display import shown
from tablestore_engine.fileio.stores import local_folder
from tablestore_engine.ingest.ingest_spec import (
    ChangeFormat,
    IngestReport,
    IngestSpec,
    OnError,
    OnTruncate,
)
from tablestore_engine.log.kafka.client_settings import (
    BROKERS,
    KAFKA_CONFIG_ENV,
    KAFKA_ENV,
    client_settings,
    read_settings,
)
from tablestore_engine.log.sink import LogPosition, LogWriter
from tablestore_engine.postgres.connect_rest import ConnectInfo, ConnectorStatus, connector_status
from tablestore_engine.postgres.database_source import DatabaseSource, parse_source
from tablestore_engine.runtime.interrupts import stopped_by_signals
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.runtime.scratch import SCRATCH_ENV
from tablestore_engine.spark.retractions import Retractions
from tablestore_engine.spark.session import SparkSettings
from tablestore_engine.spark.spark_errors import translate as explain_failure
from tablestore_engine.spark.stateful_query import OutputMode
from tablestore_engine.spark.traced_query import AffectedKeys, FollowedInput, TracedQuery
from tablestore_engine.sql.changed_tables import changed_tables
from tablestore_engine.sql.table_version import ChangesBetween, TableVersion, find_version, versioned_database
from tablestore_engine.store.expiry.expire_partitions import PartitionReport
from tablestore_engine.store.expiry.expire_snapshots import ExpireReport
from tablestore_engine.store.metadata.source_positions import PositionStep, encode_steps, steps_of
from tablestore_engine.store.orphan_files.clean_orphans import DAY_MS, OrphanReport
from tablestore_engine.store.rows.row_filter import Interval, RowFilter, SameKeys
from tablestore_engine.store.write.requested_compaction import FileTotals
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.stream.changes_input import TABLE_SOURCE, ChangesInput
from tablestore_engine.stream.consumer_lag import ConsumerFacts
from tablestore_engine.stream.startup_mode import StartupMode
from tablestore_engine.stream.stream_lag import StreamLag
from tablestore_engine.stream.table_stream import TableStream
from tablestore_engine.warehouse.gate.gate_rule import (
    GateBook,
    Outcome,
    Staged,
    Verdict,
    World,
    bound_group,
    explain,
    find_obstacle,
    order_group,
    pick_group,
    short_name,
)
from tablestore_engine.warehouse.gate.gatekeeper import (
    PENDING,
    PUBLISHED,
    REFUSED,
    Gatekeeper,
    Publication,
    stage_properties,
)
from tablestore_engine.warehouse.log.log_status import LogStatus
from tablestore_engine.warehouse.maintenance.compact_report import CompactReport
from tablestore_engine.warehouse.relations.relation_list import DAMAGED, RelationInfo, describe_damage
from tablestore_engine.warehouse.streaming_state_files import POSITION as STATE_POSITION
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec, WriteSpec
from tablestore_engine.warehouse.write_report import WriteReport

__all__ = [
    "BROKERS",
    "DAMAGED",
    "DAY_MS",
    "KAFKA_CONFIG_ENV",
    "KAFKA_ENV",
    "PENDING",
    "PUBLISHED",
    "REFUSED",
    "SCRATCH_ENV",
    "STATE_POSITION",
    "TABLE_SOURCE",
    "AffectedKeys",
    "ChangeFormat",
    "ChangedKeys",
    "ChangesBetween",
    "ChangesInput",
    "ColumnInfo",
    "CompactReport",
    "ConnectInfo",
    "ConnectorStatus",
    "ConsumerFacts",
    "DatabaseSource",
    "Engine",
    "ExpireReport",
    "FileTotals",
    "FollowedInput",
    "GateBook",
    "Gatekeeper",
    "IngestReport",
    "IngestSpec",
    "Interval",
    "LogPosition",
    "LogStatus",
    "LogWriter",
    "OnError",
    "OnSchemaChange",
    "OnTruncate",
    "OrderedLock",
    "OrphanFolder",
    "OrphanReport",
    "Outcome",
    "OutputMode",
    "PartitionReport",
    "PositionStep",
    "Publication",
    "Rank",
    "ReadLog",
    "RelationInfo",
    "Retractions",
    "RowFilter",
    "SameKeys",
    "Scan",
    "SourceLag",
    "SparkSettings",
    "SqlResult",
    "Staged",
    "StagedInfo",
    "StartupMode",
    "StatefulRun",
    "StatefulStreams",
    "StreamLag",
    "SyncReport",
    "SyncSpec",
    "Table",
    "TableFacts",
    "TableRead",
    "TableSpec",
    "TableStream",
    "TableVersion",
    "TablestoreSource",
    "TracedQuery",
    "Verdict",
    "World",
    "WriteMode",
    "WriteReport",
    "WriteSpec",
    "bound_group",
    "changed_tables",
    "client_settings",
    "connector_status",
    "describe_damage",
    "encode_steps",
    "explain",
    "explain_failure",
    "find_connect",
    "find_obstacle",
    "find_version",
    "local_folder",
    "order_group",
    "parse_source",
    "pick_group",
    "read_settings",
    "short_name",
    "shown",
    "stage_properties",
    "start_connect",
    "steps_of",
    "stop_connect",
    "stopped_by_signals",
    "stream_lags",
    "sync_database",
    "versioned_database",
]

_FORMER_NAMES: dict[str, object] = {"LeftoverFolder": OrphanFolder, "StartMode": StartupMode}


def __getattr__(name: str) -> object:
    """A former name of this module, until the release after 1.11; CHANGELOG.md lists them."""
    if name not in _FORMER_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    now = _FORMER_NAMES[name]
    warn_former(f"{__name__}.{name}", getattr(now, "__name__", str(now)))
    return now
