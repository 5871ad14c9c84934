"""Settings of a Spark session that can change the result of a query, as text."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession

_ALWAYS = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive")
# prefixes of settings that change how a query runs, not what it gives; one that is not here costs one slow run
_ONLY_SPEED = (
    "spark.sql.adaptive.", "spark.sql.artifact.", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.catalog",
    "spark.sql.cbo.", "spark.sql.codegen.", "spark.sql.columnVector.", "spark.sql.debug.", "spark.sql.execution.",
    "spark.sql.extensions", "spark.sql.files.maxPartition", "spark.sql.inMemory", "spark.sql.join.",
    "spark.sql.maxMetadata", "spark.sql.maxPlan", "spark.sql.parquet.filterPushdown", "spark.sql.pyspark.",
    "spark.sql.queryExecutionListeners", "spark.sql.redaction.", "spark.sql.shuffle.",
    "spark.sql.sources.parallelPartitionDiscovery.", "spark.sql.statistics.", "spark.sql.streaming.", "spark.sql.ui.",
    "spark.sql.warehouse.dir", "spark.sql.broadcast", "spark.sql.event.", "spark.sql.subexpressionElimination.",
    "spark.sql.addPartition",
)  # fmt: skip


def read_result_settings(session: SparkSession) -> str:
    """Sorted `name=value` lines of what is set and may change results, with Spark's version."""
    jvm: Any = session._jvm
    settings: Any = session._jsparkSession.sessionState().conf().settings()
    text = str(
        jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(settings)
    )  # one call for all
    lines = {
        f"{name}={value}"
        for name, value in json.loads(text).items()
        if name.startswith("spark.sql.") and not name.startswith(_ONLY_SPEED)
    }
    lines |= {f"{name}={session.conf.get(name)}" for name in _ALWAYS}
    return "\n".join([f"version={session.version}", *sorted(lines)])
