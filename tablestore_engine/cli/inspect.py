"""`tablestore show|snapshots|files|diff|changelog`: look at tables; nothing is changed, no JVM but for views.

Steps      arguments → engine → facts as plain values → JSON or an aligned table
INVARIANT  both outputs come from the same values; the table may leave columns out, never the other way round.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from tablestore_engine.api import DAMAGED, ColumnInfo, Engine, RelationInfo, Table, describe_damage
from tablestore_engine.cli.net_changes import NetChange, pick_samples
from tablestore_engine.cli.output import print_facts, print_json, print_table, say, to_size, to_utc, write_out
from tablestore_engine.cli.warehouse_choice import add_place, check_readable, list_databases, open_engine
from tablestore_engine.errors import NotFound
from tablestore_engine.format.binary_row import decode_row
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.commit.commit_report import report_of
from tablestore_engine.store.files.stored_file import StoredFile

Run = Callable[[argparse.Namespace], int]
Record = dict[str, object]
_SAMPLES = 5
_SHOWN_ROWS = 100


# show ------------------------------------------------------------------------------------------------


def _register_show(parser: argparse.ArgumentParser) -> Run:
    add_place(parser, name="any")
    return _show


def _show(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        if arguments.table is None or "." not in arguments.table:
            _show_list(engine, arguments.table, as_json=arguments.json)
        else:
            _show_one(engine, arguments.table, as_json=arguments.json)
    return 0


def _show_list(engine: Engine, database: str | None, *, as_json: bool) -> None:
    records = [
        _relation_record(engine, info)
        for name in list_databases(engine, database)
        for info in engine.relations(name)
    ]
    problems = {str(one["name"]): str(one["problem"]) for one in records if one["problem"] is not None}
    if as_json:
        print_json(records)
    else:
        _print_records(records, ("name", "kind", "rows", "snapshot", "committed_at", "comment"))
        if not records:
            say(f"no tables in {engine.warehouse}")
    check_readable(problems, len(records))


def _relation_record(engine: Engine, info: RelationInfo) -> Record:
    record: Record = {"name": str(info.identifier), "kind": info.kind, "rows": None, "snapshot": None}
    problem = info.problem
    if info.kind == "table" and problem is None:
        try:
            facts = engine.table(str(info.identifier)).facts()
        except DAMAGED as damage:
            problem = describe_damage(damage)
        else:
            committed = to_utc(facts.committed_at_ms)
            record |= {"rows": facts.rows, "snapshot": facts.snapshot_id, "committed_at": committed}
    return {"committed_at": None, **record, "comment": info.comment, "problem": problem}


def _show_one(engine: Engine, name: str, *, as_json: bool) -> None:
    info = engine.find_relation(name)
    if info is None:
        raise NotFound(
            "TS1926",
            f"there is no table or view {name}",
            why=f"the warehouse {engine.warehouse} has no such name",
            fix="list them: tablestore show",
        )
    columns = [_column_record(column) for column in engine.columns(name)]
    if info.kind == "view":
        view = engine.find_view(name)
        facts: Record = {
            "name": name,
            "kind": "view",
            "comment": info.comment,
            "sql": view.sql if view else None,
        }
    else:
        facts = _table_record(engine.table(name))
    if as_json:
        print_json({**facts, "columns": columns})
        return
    options = facts.pop("options", None)
    print_facts({key.replace("_", " "): _short(value) for key, value in facts.items()})
    write_out("")
    _print_records(columns, ("name", "type", "nullable", "comment"))
    if isinstance(options, Mapping) and options:
        write_out("")
        print_table(("option", "value"), sorted(options.items()))


def _table_record(table: Table) -> Record:
    facts, schema = table.facts(), table.schema
    return {
        "name": str(table.identifier),
        "kind": "table",
        "comment": schema.comment,
        "primary_key": facts.primary_key,
        "partition_by": facts.partition_by,
        "buckets": facts.buckets,
        "snapshot": facts.snapshot_id,
        "committed_at": to_utc(facts.committed_at_ms),
        "rows": facts.rows,
        "files": facts.files,
        "bytes": facts.bytes,
        "schema": schema.id,
        "log_topic": facts.log,
        "tags": dict(table.list_tags()),
        "staged": [one.name for one in table.staged()],
        "location": table.store.location,
        "options": dict(schema.options),
    }


def _column_record(column: ColumnInfo) -> Record:
    return {
        "name": column.name,
        "type": column.type_text,
        "nullable": column.nullable,
        "comment": column.comment,
    }


def _short(value: object) -> object:
    if isinstance(value, Mapping):
        return tuple(f"{key} → {item}" for key, item in value.items())
    return value


# snapshots -------------------------------------------------------------------------------------------


def _register_snapshots(parser: argparse.ArgumentParser) -> Run:
    add_place(parser)
    parser.add_argument("--last", type=int, metavar="N", help="only the newest N")
    return _snapshots


def _snapshots(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        tags: dict[int, list[str]] = {}
        for name, number in table.list_tags().items():
            tags.setdefault(number, []).append(name)
        snapshots = table.snapshots()
    if arguments.last is not None:
        snapshots = snapshots[max(len(snapshots) - max(arguments.last, 0), 0) :]
    records = [snapshot_record(snapshot, tags.get(snapshot.id, [])) for snapshot in snapshots]
    if arguments.json:
        print_json(records)
        return 0
    shown = (
        "id",
        "committed_at",
        "kind",
        "inserted",
        "updated",
        "deleted",
        "changelog_rows",
        "schema",
        "tags",
    )
    _print_records([{**one, "tags": ", ".join(tags.get(_int(one["id"]), []))} for one in records], shown)
    return 0


def snapshot_record(snapshot: Snapshot, tags: Sequence[str]) -> Record:
    """One snapshot; the counts of other writers' snapshots are 0."""
    report = report_of(snapshot)
    return {
        "id": snapshot.id,
        "committed_at": to_utc(snapshot.time_millis),
        "kind": str(snapshot.commit_kind),
        "inserted": report.inserted,
        "updated": report.updated,
        "deleted": report.deleted,
        "changelog_rows": report.changelog_rows,
        "stored_rows": snapshot.total_record_count,
        "schema": snapshot.schema_id,
        "commit_user": snapshot.commit_user,
        "commit_identifier": snapshot.commit_identifier,
        "properties": dict(snapshot.properties or {}),
        "tags": list(tags),
    }


# files -----------------------------------------------------------------------------------------------


def _register_files(parser: argparse.ArgumentParser) -> Run:
    add_place(parser)
    parser.add_argument("--snapshot", type=int, metavar="N", help="of a past snapshot")
    parser.add_argument("--tag", metavar="NAME", help="of a tag")
    return _files


def _files(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        plan = table.scan(snapshot=arguments.snapshot, tag=arguments.tag).plan()
        partition_keys = plan.schema.partition_keys
        records = [file_record(file, partition_keys) for file in plan.files]
    if arguments.json:
        print_json(records)
        return 0
    rows = [
        {
            **one,
            "partition": file.partition_path.strip("/"),
            "size": to_size(file.meta.file_size),
            "keys": _key_range(one),
        }
        for one, file in zip(records, plan.files, strict=True)
    ]
    _print_records(rows, ("partition", "bucket", "level", "rows", "deleted", "size", "keys", "file"))
    return 0


def file_record(file: StoredFile, partition_keys: Sequence[str]) -> Record:
    """One data file; `rows` counts all in it, `deleted` those that are no longer part of the table."""
    meta, schema = file.meta, file.schema
    types = [field.type for field in schema.fields_of(schema.trimmed_primary_keys)] if schema.is_keyed else []
    return {
        "partition": dict(zip(partition_keys, file.partition, strict=True)),
        "bucket": file.bucket,
        "level": meta.level,
        "rows": meta.row_count,
        "deleted": meta.row_count - file.visible_rows,
        "bytes": meta.file_size,
        "min_key": list(decode_row(meta.min_key, types)) if types else None,
        "max_key": list(decode_row(meta.max_key, types)) if types else None,
        "schema": meta.schema_id,
        "file": meta.file_name,
        "path": file.path,
    }


def _key_range(record: Record) -> str:
    ends = [record["min_key"], record["max_key"]]
    return " … ".join(", ".join(map(str, end)) for end in ends if isinstance(end, list))


# diff and changelog ----------------------------------------------------------------------------------


def _register_diff(parser: argparse.ArgumentParser) -> Run:
    add_place(parser)
    parser.add_argument("a", type=int, metavar="A", help="snapshot id")
    parser.add_argument("b", type=int, metavar="B", nargs="?", help="snapshot id (default: the newest)")
    text = f"sample rows of each kind (default {_SAMPLES})"
    parser.add_argument("--samples", type=int, default=_SAMPLES, metavar="N", help=text)
    return _diff


def _diff(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        first, second = arguments.a, arguments.b
        if second is None:
            second = table.latest_snapshot_id() or first
        for number in (first, second):
            table.store.snapshots.get(number)
        counts = table.diff(first, second)
        low, high = min(first, second), max(first, second)
        samples = pick_samples(
            lambda columns: table.change_batches(low, high, columns),
            table.schema.primary_keys,
            max(arguments.samples, 0),
        )
        names = table.schema.field_names
    if second < first:
        samples = tuple(one.swapped() for one in samples)
    numbers = {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}
    if arguments.json:
        record: Record = {"table": arguments.table, "from": first, "to": second, **numbers}
        print_json({**record, "samples": samples_record(samples)})
        return 0
    summary = f"+{counts.inserted} ~{counts.updated} -{counts.deleted}"
    write_out(f"{arguments.table}, snapshot {first} to {second}: {summary}")
    lines = [line for one in samples for line in _sample_lines(one)]
    if lines:
        write_out("")
        print_table(("", *names), [(sign, *(row.get(name) for name in names)) for sign, row in lines])
    return 0


def samples_record(samples: Sequence[NetChange]) -> Record:
    """Sample rows by kind; an update has both rows."""
    return {
        "inserted": [one.after for one in samples if one.kind == "inserted"],
        "updated": [{"before": one.before, "after": one.after} for one in samples if one.kind == "updated"],
        "deleted": [one.before for one in samples if one.kind == "deleted"],
    }


def _sample_lines(change: NetChange) -> list[tuple[str, Mapping[str, object]]]:
    """The rows of one key with the sign that a changelog gives them."""
    is_update = change.kind == "updated"
    ends = ((change.before, "-U" if is_update else "-D"), (change.after, "+U" if is_update else "+I"))
    return [(sign, row) for row, sign in ends if row is not None]


def _register_changelog(parser: argparse.ArgumentParser) -> Run:
    add_place(parser)
    parser.add_argument(
        "--since", type=int, default=0, metavar="N", help="changes after snapshot N (default 0: all)"
    )
    parser.add_argument(
        "--until", type=int, metavar="M", help="up to and with snapshot M (default: the newest)"
    )
    text = f"rows at most (default: {_SHOWN_ROWS}, with --json all)"
    parser.add_argument("--limit", type=int, metavar="ROWS", help=text)
    return _changelog


def _changelog(arguments: argparse.Namespace) -> int:
    limit = arguments.limit
    if limit is None and not arguments.json:
        limit = _SHOWN_ROWS
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        kept, total = _first_rows(table.change_batches(arguments.since, arguments.until), limit)
        changes = pa.Table.from_batches(kept) if kept else table.changes(0, 0)
    shown = _kinds_first(changes)
    if arguments.json:
        print_json(shown.to_pylist())
    else:
        print_table(shown.column_names, [tuple(row.values()) for row in shown.to_pylist()])
    if shown.num_rows < total:
        say(f"{shown.num_rows} of {total} rows; see more with --limit {total}")
    return 0


def _first_rows(batches: Iterable[pa.RecordBatch], limit: int | None) -> tuple[list[pa.RecordBatch], int]:
    """The first `limit` rows (None: all), and how many there are; the others are counted and let go."""
    kept: list[pa.RecordBatch] = []
    total = 0
    for batch in batches:
        room = batch.num_rows if limit is None else max(limit - total, 0)
        if room:
            kept.append(batch.slice(0, room))
        total += batch.num_rows
    return kept, total


def _kinds_first(changes: pa.Table) -> pa.Table:
    helpers = ["_snapshot_id", "_row_kind"]
    return changes.select([*helpers, *(name for name in changes.column_names if name not in helpers)])


# -----------------------------------------------------------------------------------------------------


def _print_records(records: Sequence[Record], columns: Sequence[str]) -> None:
    rows = [["" if one.get(name) is None else one[name] for name in columns] for one in records]
    print_table([name.replace("_", " ") for name in columns], rows)


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


REGISTER = {
    "show": _register_show,
    "snapshots": _register_snapshots,
    "files": _register_files,
    "diff": _register_diff,
    "changelog": _register_changelog,
}
