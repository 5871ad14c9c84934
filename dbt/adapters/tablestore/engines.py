"""One engine per warehouse and process, shared by dbt's threads and by successive runs in one process.

WHY        an engine owns the Spark session; a JVM holds one, and starting it is most of a small dbt run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dbt.adapters.tablestore.credentials import EngineSettings
from dbt.adapters.tablestore.messages import TerminalMessages
from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.spi import OrderedLock, Rank, fetch_s3_jars

logger = TerminalMessages("Tablestore")
_ENGINES: dict[EngineSettings, Engine] = {}
_LOCK = OrderedLock("engines", Rank.ENGINES)


def _jars_of(warehouse: EngineSettings) -> Callable[[], Sequence[str]]:
    """Fetched when the session starts; on a cluster jars are the cluster's own affair."""
    if warehouse.fetches_connector and warehouse.spark_master.startswith("local"):
        return partial(fetch_s3_jars, logger.info)
    return tuple


def get_engine(warehouse: EngineSettings) -> Engine:
    """Open, or return the open one. Starts no JVM: the engine does so when it first needs Spark."""
    with _LOCK:
        engine = _ENGINES.get(warehouse)
        if engine is None:
            settings = SparkSettings(
                master=warehouse.spark_master,
                conf=dict(warehouse.spark_conf),
                read_way=warehouse.read_way,
                more_jars=_jars_of(warehouse),
            )
            engine = Engine(
                warehouse.location,
                spark=settings,
                log=dict(warehouse.log),
                trusted_sql=warehouse.trusted_sql,
                scratch=warehouse.scratch,
                say=logger.info,
            )
            _ENGINES[warehouse] = engine
        return engine
