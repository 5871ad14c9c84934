"""The Python API: what users import. A name that is released is kept.

Names are in `__all__`, at most 40, and the engine's errors are among them. `tablestore_engine.spi` has what the dbt
adapter, the command line and the demo need besides.
"""

from typing import TYPE_CHECKING

from tablestore_engine.lazy_names import load_on_use

if TYPE_CHECKING:
    from tablestore_engine.api.engine import Engine
    from tablestore_engine.api.results import ColumnInfo, SqlResult, TableFacts
    from tablestore_engine.api.source_lags import SourceLag, stream_lags
    from tablestore_engine.api.table import Table
    from tablestore_engine.api.table_scan import Scan
    from tablestore_engine.datasource.spark_source import TablestoreSource
    from tablestore_engine.errors import (
        Fenced,
        FixData,
        FixRequest,
        NotFound,
        OutcomeUnknown,
        PublishPending,
        RetryError,
        TablestoreError,
        Unsupported,
    )
    from tablestore_engine.ingest.ingest_spec import (
        ChangeFormat,
        IngestReport,
        IngestSpec,
        OnError,
        OnTruncate,
    )
    from tablestore_engine.spark.spark_errors import translate as explain_failure
    from tablestore_engine.spark.spark_settings import SparkSettings
    from tablestore_engine.sql.table_version import ChangesBetween, TableVersion
    from tablestore_engine.store.expiry.expire_snapshots import ExpireReport
    from tablestore_engine.store.rows.row_filter import Interval, SameKeys
    from tablestore_engine.store.write.write_request import WriteMode
    from tablestore_engine.stream.table_stream import TableStream
    from tablestore_engine.warehouse.log.log_status import LogStatus
    from tablestore_engine.warehouse.maintenance.compact_report import CompactReport
    from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec, WriteSpec
    from tablestore_engine.warehouse.write_report import WriteReport

__all__ = [
    "ChangeFormat",
    "ChangesBetween",
    "ColumnInfo",
    "CompactReport",
    "Engine",
    "ExpireReport",
    "Fenced",
    "FixData",
    "FixRequest",
    "IngestReport",
    "IngestSpec",
    "Interval",
    "LogStatus",
    "NotFound",
    "OnError",
    "OnSchemaChange",
    "OnTruncate",
    "OutcomeUnknown",
    "PublishPending",
    "RetryError",
    "SameKeys",
    "Scan",
    "SourceLag",
    "SparkSettings",
    "SqlResult",
    "Table",
    "TableFacts",
    "TableSpec",
    "TableStream",
    "TableVersion",
    "TablestoreError",
    "TablestoreSource",
    "Unsupported",
    "WriteMode",
    "WriteReport",
    "WriteSpec",
    "explain_failure",
    "stream_lags",
]

__getattr__ = load_on_use(__name__)
