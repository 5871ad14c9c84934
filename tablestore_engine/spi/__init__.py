"""What the dbt adapter, the command line and the demo use of the engine besides `tablestore_engine.api`.

Not stable: a name may change with any release, together with the adapter. Python users import `tablestore_engine.api`.
"""

from typing import TYPE_CHECKING

from tablestore_engine.lazy_names import load_on_use

if TYPE_CHECKING:
    from tablestore_engine.api.database_sync import SyncReport, SyncSpec, sync_database
    from tablestore_engine.api.empty_batches import EmptyBatches
    from tablestore_engine.api.preload import load_for_builds
    from tablestore_engine.api.results import shown_columns
    from tablestore_engine.catalog.orphan_folders import OrphanFolder
    from tablestore_engine.catalog.read_log import ReadLog, TableRead
    from tablestore_engine.devservers.hadoop_jars import fetch_s3_jars
    from tablestore_engine.devservers.kafka_connect import (
        LastStart,
        find_connect,
        find_last_start,
        start_connect,
        stop_connect,
    )
    from tablestore_engine.display import shown
    from tablestore_engine.errors import (
        Area,
        DataFileGone,
        EngineBug,
        RepeatedKeys,
        StagedSnapshotClosed,
        StagedSnapshotMissing,
        StagedSnapshotOvertaken,
        StagedVersionMissing,
    )
    from tablestore_engine.fileio.store_address import is_object_store
    from tablestore_engine.fileio.stores import absolute_address, local_folder
    from tablestore_engine.format.group_state_file import GroupState, UnusableState, group_state_header
    from tablestore_engine.log.kafka.client_settings import (
        BROKERS,
        KAFKA_CONFIG_ENV,
        KAFKA_ENV,
        DeferredSettings,
        client_settings,
        read_settings,
    )
    from tablestore_engine.log.sink import LogPosition, LogWriter
    from tablestore_engine.options import OPTIONS, Scope, check_options, is_credential
    from tablestore_engine.postgres.connect_rest import ConnectInfo, connector_status
    from tablestore_engine.postgres.database_source import DatabaseSource, parse_source
    from tablestore_engine.runtime.interrupts import stopped_by_signals, wake_at_signals
    from tablestore_engine.runtime.locks import OrderedCondition, OrderedLock, Rank
    from tablestore_engine.runtime.moments import aware, epoch_millis, moment_text, read_zone
    from tablestore_engine.runtime.outside_world import SYSTEM
    from tablestore_engine.runtime.scratch import SCRATCH_ENV
    from tablestore_engine.spark.empty_query import EmptyQuery
    from tablestore_engine.spark.frame_kinds import FrameKind
    from tablestore_engine.spark.query_deltas import PlannedDeltas, QueryState
    from tablestore_engine.spark.resolving_session import imported
    from tablestore_engine.spark.spark_settings import OutputMode, ReadWay
    from tablestore_engine.spark.traced_answers import (
        GROUPS_MAX,
        AffectedKeys,
        Before,
        Deltas,
        FollowedDeltas,
        FollowedInput,
    )
    from tablestore_engine.spark.traced_query import TracedQuery
    from tablestore_engine.sql.changed_tables import changed_tables
    from tablestore_engine.sql.table_version import MOMENT, versioned_database
    from tablestore_engine.store.expiry.expire_partitions import PartitionReport
    from tablestore_engine.store.foreign_commits import ROWS_BEFORE
    from tablestore_engine.store.metadata.rows_read import ROWS_READ
    from tablestore_engine.store.metadata.source_positions import (
        FORGET_ALL,
        PositionStep,
        encode_steps,
        steps_of,
    )
    from tablestore_engine.store.orphan_files.clean_orphans import OrphanReport
    from tablestore_engine.store.rows.row_filter import RowFilter
    from tablestore_engine.store.write.requested_compaction import FileTotals
    from tablestore_engine.stream.changes_input import TABLE_SOURCE, ChangesInput
    from tablestore_engine.warehouse.gate.expired_stages import drop_expired
    from tablestore_engine.warehouse.gate.failing_rows import ROWS_MAX, FailingRows, pick_failing_rows
    from tablestore_engine.warehouse.gate.gate_rule import (
        GateBook,
        Outcome,
        Staged,
        Verdict,
        World,
        bound_group,
        explain,
        find_obstacle,
        is_held,
        needs_world,
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
    )
    from tablestore_engine.warehouse.gate.retention_rule import ExpiredStage, kept_text, kept_until_ms
    from tablestore_engine.warehouse.gate.stored_gates import stage_properties
    from tablestore_engine.warehouse.group_state_files import NO_STATE
    from tablestore_engine.warehouse.relations.relation_list import DAMAGED, RelationInfo, describe_damage
    from tablestore_engine.warehouse.streaming_state_files import POSITION as STATE_POSITION
    from tablestore_engine.warehouse.write.incoming_rows import KnownRows, NoRows

__getattr__ = load_on_use(__name__)
