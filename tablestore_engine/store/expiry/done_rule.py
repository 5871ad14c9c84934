"""What the options of a table say of partitions that are done; nothing is marked here.

CHANGE     which partitions are marked as done, and how (options partition.mark-done-action,
           partition.mark-done-action.http.url, partition.mark-done-action.http.params, partition.end-input-to-done,
           partition.idle-time-to-done, partition.time-interval)
"""

from __future__ import annotations

from urllib.parse import urlsplit

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.retention import DONE_BY_COMMITS, DoneRule
from tablestore_engine.store.table_traits import TableTraits

SUCCESS_FILE, HTTP_REPORT = "success-file", "http-report"


def find_done_rule(schema: TableSchema) -> DoneRule:
    """What the options of the table say. Raises FixRequest TS1001, TS1217."""
    rule = TableTraits(schema).done_rule
    fault = _fault(rule, has_partitions=bool(schema.partition_keys))
    if fault is not None:
        raise FixRequest(
            "TS1217",
            "partitions cannot be marked as done by these options",
            why=fault[0],
            fix=fault[1],
        )
    return rule


def check_done_rule(schema: TableSchema) -> None:
    """Raises FixRequest TS1217 for options that would have no effect, or mark a partition again and again."""
    asked = schema.options.keys() & (DONE_BY_COMMITS | {"partition.mark-done-action"})
    if asked - {key for key in asked if schema.options[key].strip().lower() == "false"}:
        find_done_rule(schema)


def _fault(rule: DoneRule, *, has_partitions: bool) -> tuple[str, str] | None:
    unknown = [one for one in rule.actions if one not in (SUCCESS_FILE, HTTP_REPORT)]
    if unknown or not rule.actions:
        return (
            f"partition.mark-done-action has {unknown[0] if unknown else 'no action'}",
            f"use {SUCCESS_FILE}, {HTTP_REPORT} or both: no metastore and no Java class is called here",
        )
    if not has_partitions:
        return "the table has no partitions", "leave the options out, or partition the table"
    if HTTP_REPORT in rule.actions and urlsplit(rule.url or "").scheme not in ("http", "https"):
        return f"{HTTP_REPORT} has no address", "set partition.mark-done-action.http.url to an http address"
    if (rule.idle_ms is None) != (rule.interval_ms is None):
        return (
            "one of partition.idle-time-to-done and partition.time-interval is missing",
            "set both: a partition of a day has the interval 1 d",
        )
    if rule.idle_ms is not None and SUCCESS_FILE not in rule.actions:
        return (
            f"without {SUCCESS_FILE} nothing says which idle partitions are marked already",
            f"add {SUCCESS_FILE} to partition.mark-done-action, or leave partition.idle-time-to-done out",
        )
    return None
