"""pypaimon-rust 0.4.0, the Rust implementation: batch, snapshots, the changelog of snapshots, and new rows."""

import importlib.metadata

import pyarrow as pa
from answers import answer, whole
from reader_program import open_rust, rust_table


def read(request):
    """All rows, at a snapshot when one is asked for."""
    return whole(open_rust(request["location"], request.get("snapshot")))


def write(request):
    """One batch commit of the rows in the Arrow file `rows`; it takes TIMESTAMP(0) in seconds alone."""
    with pa.OSFile(request["rows"]) as source:
        rows = pa.ipc.open_file(source).read_all()
    table = rust_table(request["location"], None)
    seconds = {one.name() for one in table.schema().fields() if one.field_type() == "TIMESTAMP(0)"}
    fields = [one.with_type(pa.timestamp("s")) if one.name in seconds else one for one in rows.schema]
    builder = table.new_batch_write_builder()
    writer = builder.new_write()
    for batch in rows.cast(pa.schema(fields)).to_batches():
        writer.write_arrow(batch)
    builder.new_commit().commit(writer.prepare_commit())


def changelog(request):
    """Changes of the snapshots (since, until], kind in the column `rowkind`; `mode` is that of the scan."""
    table = rust_table(request["location"], request["until"])
    builder = table.new_read_builder({}).with_include_row_kind(True)
    scan = builder.new_incremental_scan(request["since"], request["until"], request.get("mode", "changelog"))
    batches = builder.new_read().read(scan.plan().splits())
    return pa.Table.from_batches(batches) if batches else pa.table({})


def ping(_):
    """Which version answers."""
    return importlib.metadata.version("pypaimon-rust")


answer({"read": read, "write": write, "changelog": changelog, "ping": ping})
