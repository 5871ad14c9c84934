"""pypaimon-rust 0.4.0, the Rust implementation: batch, snapshots, and the changelog between two snapshots."""

import importlib.metadata

import pyarrow as pa
from answers import answer, whole
from reader_program import open_rust, rust_table


def read(request):
    """All rows, at a snapshot when one is asked for."""
    return whole(open_rust(request["location"], request.get("snapshot")))


def changelog(request):
    """Changes of the snapshots (since, until], kind in the column `rowkind`."""
    table = rust_table(request["location"], request["until"])
    builder = table.new_read_builder({}).with_include_row_kind(True)
    scan = builder.new_incremental_scan(request["since"], request["until"], "changelog")
    batches = builder.new_read().read(scan.plan().splits())
    return pa.Table.from_batches(batches) if batches else pa.table({})


answer({"read": read, "changelog": changelog, "ping": lambda _: importlib.metadata.version("pypaimon-rust")})
