"""pypaimon 2.1.0 in pure Python (its native reader is another peer and is not installed here)."""

import pyarrow as pa
from answers import answer
from pypaimon.table.file_store_table import FileStoreTable


def read(request):
    """All rows, at a snapshot when one is asked for."""
    table = FileStoreTable.from_path(request["location"])
    if request.get("snapshot") is not None:
        table = table.copy({"scan.snapshot-id": str(request["snapshot"])})
    builder = table.new_read_builder()
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


def write(request):
    """One batch commit of the rows in the Arrow file `rows`."""
    with pa.OSFile(request["rows"]) as source:
        rows = pa.ipc.open_file(source).read_all()
    builder = FileStoreTable.from_path(request["location"]).new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(rows)
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def ping(_):
    """Which version answers."""
    import importlib.metadata

    return importlib.metadata.version("pypaimon")


answer({"read": read, "write": write, "ping": ping})
