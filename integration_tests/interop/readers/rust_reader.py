"""pypaimon-rust 0.4.0, the Rust implementation: batch, snapshots, and the changelog between two snapshots."""

import importlib.metadata
import json
from pathlib import Path

import pyarrow as pa
from answers import answer
from pypaimon_rust.datafusion import Table


def opened(request, snapshot):
    """The table with the schema of the snapshot (the newest one when none is asked for)."""
    location = Path(request["location"])
    if snapshot is None:
        schema_id = max(int(file.name[7:]) for file in (location / "schema").glob("schema-*"))
    else:
        schema_id = json.loads((location / "snapshot" / f"snapshot-{snapshot}").read_text())["schemaId"]
    return Table.from_resolved_schema(
        str(location), (location / "schema" / f"schema-{schema_id}").read_text()
    )


def collect(builder, scan):
    """Rows of a scan as one Arrow table."""
    reader = builder.new_read()
    batches = reader.read(scan.plan().splits())
    return pa.Table.from_batches(batches) if batches else pa.table({})


def read(request):
    """All rows, at a snapshot when one is asked for."""
    snapshot = request.get("snapshot")
    options = {"scan.snapshot-id": str(snapshot)} if snapshot is not None else {}
    builder = opened(request, snapshot).new_read_builder(options)
    return collect(builder, builder.new_scan())


def changelog(request):
    """Changes of the snapshots (since, until], kind in the column `rowkind`."""
    builder = opened(request, request["until"]).new_read_builder({}).with_include_row_kind(True)
    return collect(builder, builder.new_incremental_scan(request["since"], request["until"], "changelog"))


answer({"read": read, "changelog": changelog, "ping": lambda _: importlib.metadata.version("pypaimon-rust")})
