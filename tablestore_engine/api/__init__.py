"""The front door: Engine and Table handles, and the values that go in and come out."""

from tablestore_engine.api.engine import Engine
from tablestore_engine.api.location import local_folder
from tablestore_engine.api.report import (
    ColumnInfo,
    RelationInfo,
    SqlResult,
    StagedInfo,
    TableFacts,
    WriteReport,
)
from tablestore_engine.api.spec import (
    OnSchemaChange,
    SparkSettings,
    TableSpec,
    TableVersion,
    WriteMode,
    WriteSpec,
)
from tablestore_engine.api.table import Scan, Table

__all__ = [
    "ColumnInfo",
    "Engine",
    "OnSchemaChange",
    "RelationInfo",
    "Scan",
    "SparkSettings",
    "SqlResult",
    "StagedInfo",
    "Table",
    "TableFacts",
    "TableSpec",
    "TableVersion",
    "WriteMode",
    "WriteReport",
    "WriteSpec",
    "local_folder",
]
