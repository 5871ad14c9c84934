"""`tablestore show`: tables of a warehouse, or columns, keys, options and facts of one. No JVM but for views.

INVARIANT  JSON and the table come from the same values; the table may leave columns out, never the other way round.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from tablestore_engine.api import ColumnInfo, Engine, Table
from tablestore_engine.cli.output import (
    print_facts,
    print_json,
    print_records,
    print_table,
    say,
    to_utc,
    write_out,
)
from tablestore_engine.cli.warehouse_choice import add_place, check_readable, list_databases, open_engine
from tablestore_engine.spi import DAMAGED, RelationInfo, describe_damage

Record = dict[str, object]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser, name="any")


def run(arguments: argparse.Namespace) -> int:
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
        print_records(records, ("name", "kind", "rows", "snapshot", "committed_at", "comment"))
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
    info = engine.relation(name)
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
    print_records(columns, ("name", "type", "nullable", "comment"))
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
        "waiting_rows": facts.waiting_rows,
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
