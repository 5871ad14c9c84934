"""The front door: Engine and Table handles, and the values that go in and come out."""

from tablestore_engine.api.client_settings import (
    BROKERS,
    KAFKA_CONFIG_ENV,
    KAFKA_ENV,
    client_settings,
    read_settings,
)
from tablestore_engine.api.engine import Engine
from tablestore_engine.api.gate import (
    GateBook,
    Outcome,
    Staged,
    TableRead,
    Verdict,
    World,
    bound_group,
    explain,
    find_obstacle,
    order_group,
    pick_group,
    short_name,
)
from tablestore_engine.api.gatekeeper import (
    PENDING,
    PUBLISHED,
    REFUSED,
    Gatekeeper,
    Publication,
    stage_properties,
)
from tablestore_engine.api.listing import DAMAGED, describe_damage
from tablestore_engine.api.location import local_folder
from tablestore_engine.api.report import (
    ColumnInfo,
    RelationInfo,
    SqlResult,
    StagedInfo,
    TableFacts,
    WriteReport,
)
from tablestore_engine.api.row_versions import ReadLog
from tablestore_engine.api.spec import (
    Interval,
    OnSchemaChange,
    RowFilter,
    SameKeys,
    SparkSettings,
    TableSpec,
    TableVersion,
    WriteMode,
    WriteSpec,
)
from tablestore_engine.api.table import Scan, Table
from tablestore_engine.display import shown
from tablestore_engine.runtime.locks import OrderedLock, Rank

__all__ = [
    "BROKERS",
    "DAMAGED",
    "KAFKA_CONFIG_ENV",
    "KAFKA_ENV",
    "PENDING",
    "PUBLISHED",
    "REFUSED",
    "ColumnInfo",
    "Engine",
    "GateBook",
    "Gatekeeper",
    "Interval",
    "OnSchemaChange",
    "OrderedLock",
    "Outcome",
    "Publication",
    "Rank",
    "ReadLog",
    "RelationInfo",
    "RowFilter",
    "SameKeys",
    "Scan",
    "SparkSettings",
    "SqlResult",
    "Staged",
    "StagedInfo",
    "Table",
    "TableFacts",
    "TableRead",
    "TableSpec",
    "TableVersion",
    "Verdict",
    "World",
    "WriteMode",
    "WriteReport",
    "WriteSpec",
    "bound_group",
    "client_settings",
    "describe_damage",
    "explain",
    "find_obstacle",
    "local_folder",
    "order_group",
    "pick_group",
    "read_settings",
    "short_name",
    "shown",
    "stage_properties",
]
