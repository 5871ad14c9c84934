"""Partitions that are marked as done: a file in their folder, or a report to a server, say that they are complete.

CHANGE     how partitions are marked as done
Steps      the commit's partitions (end-input-to-done), those that are idle (idle-time-to-done), or those that somebody
           names → each action for each of them, in their order
INVARIANT  a mark changes no row and no metadata: it follows the commit, which stands when a mark fails.
CRASH      between two partitions: the others are marked by the next commit that finds them idle, or by the command.
PAIMON     the same file (`_SUCCESS`, JSON) and the same report. Java keeps what is not marked yet in the state of a
           Flink job; here the file says when its partition was marked, and the files of the partition when it changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format.manifest import FileKind
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.expiry.done_rule import (
    HTTP_REPORT,
    SUCCESS_FILE,
    find_done_rule,
)
from tablestore_engine.store.expiry.expire_partitions import pick_partitions
from tablestore_engine.store.expiry.partition_time import partition_time
from tablestore_engine.store.retention import DONE_BY_COMMITS, DoneRule, PartitionRule
from tablestore_engine.store.rows.row_condition import RowCondition
from tablestore_engine.store.table_context import TableContext

SUCCESS_NAME = "_SUCCESS"
_TIMEOUT_SECONDS = 30
_MS = 1_000_000  # nanoseconds

Post = Callable[[str, Mapping[str, str | None]], str]


def mark_partitions(
    context: TableContext, table: str, rule: DoneRule, partitions: Iterable[bytes], post: Post | None = None
) -> tuple[str, ...]:
    """The folders of those that were marked, as `dt=2026-01-31`. Raises StorageError, FixRequest TS1219 of a report
    that failed: those before it are marked.
    """
    spec = PartitionSpec.of(context.latest_schema())
    marked = []
    for one in sorted(partitions):
        folder = spec.path(spec.decode(one)).rstrip("/")
        if HTTP_REPORT in rule.actions:
            _report(context, table, rule, folder, post or post_json)
        if SUCCESS_FILE in rule.actions:
            _write_success(context, folder)
        marked.append(folder)
    return tuple(marked)


def mark_where(context: TableContext, table: str, where: RowCondition | None) -> tuple[str, ...]:
    """Marks the partitions whose values `where` is TRUE of; None: those that are idle. Raises FixRequest TS1215,
    TS1217, NotFound TS1218 for a condition that no partition fulfils, before any is marked; and as mark_partitions.
    """
    newest = context.snapshots.find_latest()
    rule = find_done_rule(context.schema_at(newest))
    if where is None:
        due = (
            frozenset() if newest is None else due_partitions(context, newest, replace(rule, on_commit=False))
        )
        return mark_partitions(context, table, rule, due)
    picked = pick_partitions(context, newest, where)
    if not picked:
        raise NotFound(
            "TS1218",
            f"no partition of {table} is among those to mark",
            why="the newest snapshot has no file in one",
            fix=f"correct the values: `tablestore system-table {table} partitions` lists them",
        )
    return mark_partitions(context, table, rule, picked)


def mark_after_commit(context: TableContext, table: str, snapshot: Snapshot) -> tuple[str, ...]:
    """What the options of the table say that a commit marks. Raises as mark_partitions."""
    schema = context.schema_at(snapshot)
    if not schema.partition_keys or not schema.options.keys() & DONE_BY_COMMITS:
        return ()
    rule = find_done_rule(schema)
    return mark_partitions(context, table, rule, due_partitions(context, snapshot, rule))


def due_partitions(context: TableContext, snapshot: Snapshot, rule: DoneRule) -> frozenset[bytes]:
    """Those that commits mark after this snapshot. Partitions whose values are no time are never idle."""
    written: set[bytes] = set()
    if rule.on_commit:
        entries = context.manifests.read_entries(snapshot.delta_manifest_list)
        written = {one.partition for one in entries if one.kind is FileKind.ADD}
    if rule.idle_ms is None or rule.interval_ms is None:
        return frozenset(written)
    spec, now = PartitionSpec.of(context.schema_at(snapshot)), context.runtime.now_ms()
    changed: dict[bytes, int] = {}
    for entry in context.scanner.live_entries(snapshot):
        changed[entry.partition] = max(changed.get(entry.partition, 0), entry.file.creation_time or 0)
    time_rule = PartitionRule(0, rule.pattern, *(() if rule.time_format is None else (rule.time_format,)))
    for one, newest in changed.items():
        begins = partition_time(spec, spec.decode(one), time_rule)
        if begins is None:
            continue
        quiet_since = max(newest, begins // _MS + rule.interval_ms)
        marked = _marked_ms(context, spec.path(spec.decode(one)).rstrip("/"))
        if now - quiet_since > rule.idle_ms and (marked is None or marked < newest):
            written.add(one)
    return frozenset(written)


def _write_success(context: TableContext, folder: str) -> None:
    now, path = context.runtime.now_ms(), _success_path(context, folder)
    created = _read_success(context, path).get("creationTime", now)
    text = json.dumps({"creationTime": created, "modificationTime": now})
    context.fileio.replace(path, text.encode())


def _success_path(context: TableContext, folder: str) -> str:
    return f"{context.layout.location}/{folder}/{SUCCESS_NAME}"


def _marked_ms(context: TableContext, folder: str) -> int | None:
    return _read_success(context, _success_path(context, folder)).get("modificationTime")


def _read_success(context: TableContext, path: str) -> dict[str, int]:
    """Empty without a file, and for one that another program left empty."""
    try:
        found = json.loads(context.fileio.read(path) or b"{}")
    except (NotFound, ValueError):
        return {}
    return (
        {key: value for key, value in found.items() if isinstance(value, int)}
        if isinstance(found, dict)
        else {}
    )


def _report(context: TableContext, table: str, rule: DoneRule, folder: str, post: Post) -> None:
    body = {"params": rule.params, "table": table, "path": context.layout.location, "partition": f"{folder}/"}
    try:
        answer = json.loads(post(str(rule.url), body))
        result = answer.get("result") if isinstance(answer, dict) else None
    except (OSError, ValueError) as wrong:
        raise _failed(folder, rule, str(wrong)) from wrong
    if str(result).upper() != "SUCCESS":
        raise _failed(folder, rule, f"the answer has result {result!r}, expected 'SUCCESS'")


def _failed(folder: str, rule: DoneRule, why: str) -> FixRequest:
    host = urlsplit(rule.url or "").hostname
    return FixRequest(
        "TS1219",
        f"partition {folder} was not reported as done to {host}",
        why=why,
        fix="start the server, then mark it: `tablestore partition mark-done DATABASE.TABLE`",
    )


def post_json(url: str, body: Mapping[str, str | None]) -> str:
    """The answer's text. Raises OSError."""
    import urllib.request  # noqa: PLC0415 - a table without reports loads none of it (decision 0137)

    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310 - http, as checked
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
        return str(answer.read().decode())
