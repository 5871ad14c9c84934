"""pypaimon 2.1.0 in pure Python (its native reader is another peer and is not installed here)."""

import pyarrow as pa
from answers import answer, whole
from pypaimon.schema.data_types import PyarrowFieldParser
from pypaimon.table.file_store_table import FileStoreTable
from reader_program import open_pypaimon


def read(request):
    """All rows, at a snapshot when one is asked for."""
    return whole(open_pypaimon(request["location"], request.get("snapshot")))


def write(request):
    """One batch commit of the rows in the Arrow file `rows`; it takes its own types alone."""
    with pa.OSFile(request["rows"]) as source:
        rows = pa.ipc.open_file(source).read_all()
    table = FileStoreTable.from_path(request["location"])
    rows = rows.cast(PyarrowFieldParser.from_paimon_schema(table.table_schema.fields))
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(rows)
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def follow(request):
    """Changes of the snapshots from `first` (or where the consumer is) to `last`, by its streaming scan."""
    table = FileStoreTable.from_path(request["location"])
    builder = table.new_stream_read_builder().with_include_row_kind()
    if request.get("consumer"):
        builder.with_consumer_id(request["consumer"])
    scan, read, parts = builder.new_streaming_scan(), builder.new_read(), []
    scan._prefetch_enabled = False  # next_snapshot_id then says where it is
    scan._diff_threshold = 1 << 30  # every snapshot by itself
    if not request.get("consumer"):
        scan.next_snapshot_id = request["first"]
    plans = scan.stream_sync()
    for plan in plans:
        parts.append(read.to_arrow(plan.splits()))
        if scan.next_snapshot_id > request["last"]:
            break
    plans.close()
    scan._flush_pending_consumer()
    found = pa.concat_tables(parts)
    return found.rename_columns(["rowkind" if name == "_row_kind" else name for name in found.column_names])


def ping(_):
    """Which version answers."""
    import importlib.metadata

    return importlib.metadata.version("pypaimon")


answer({"read": read, "write": write, "follow": follow, "ping": ping})
