"""`tablestore files`: the data files of a snapshot with levels and deleted rows. No JVM."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tablestore_engine.cli.output import print_json, print_records, to_size
from tablestore_engine.cli.warehouse_choice import add_place, open_engine, snapshot_name
from tablestore_engine.format.binary_row import decode_row
from tablestore_engine.store.files.stored_file import StoredFile

Record = dict[str, object]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    text = "of a past snapshot, or of @staged[:NAME]"
    parser.add_argument("--snapshot", type=snapshot_name, metavar="N", help=text)
    parser.add_argument("--tag", metavar="NAME", help="of a tag")


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        table = engine.table(arguments.table)
        if isinstance(arguments.snapshot, str):
            plan = table.compare(arguments.snapshot).seen.plan_scan()
        else:
            plan = table.scan(snapshot=arguments.snapshot, tag=arguments.tag).plan()
        partition_keys = plan.schema.partition_keys
        records = [file_record(file, partition_keys) for file in plan.stored_files]
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
        for one, file in zip(records, plan.stored_files, strict=True)
    ]
    print_records(rows, ("partition", "bucket", "level", "rows", "deleted", "size", "keys", "file"))
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
