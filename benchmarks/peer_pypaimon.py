"""pypaimon on the same rows, in an environment of its own; prints one JSON object. Run by benchmarks/run.py.

Usage      python peer_pypaimon.py WAREHOUSE BASE.parquet BATCH.parquet …
Imports nothing of ours: pypaimon 2.1 with its native parts switched on where it has them.
"""

import json
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon import CatalogFactory, Schema


def write(table, rows):
    """One batch commit."""
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(rows)
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def main(warehouse, base, *batches):
    """Load, upsert, read; seconds of each."""
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database("bench", True)
    rows = pq.read_table(base)
    options = {
        "bucket": "2",
        "file.format": "parquet",
        "write.native.enabled": "true",
        "read.native.enabled": "true",
    }
    fields = [f.with_nullable(f.name != "id") for f in rows.schema]
    schema = Schema.from_pyarrow_schema(pa.schema(fields), primary_keys=["id"], options=options)
    catalog.create_table("bench.rows", schema, True)
    table = catalog.get_table("bench.rows")
    result = {"upserts": []}
    started = time.monotonic()
    write(table, rows.cast(pa.schema(fields)))
    result["load"] = time.monotonic() - started
    for path in batches:
        batch = pq.read_table(path).cast(pa.schema(fields))
        started = time.monotonic()
        write(table, batch)
        result["upserts"].append(time.monotonic() - started)
    started = time.monotonic()
    reader = table.new_read_builder()
    final = reader.new_read().to_arrow(reader.new_scan().plan().splits())
    result["read"] = time.monotonic() - started
    total = sum(final["quantity"].to_pylist())
    result["checksum"] = [final.num_rows, sum(final["id"].to_pylist()), total]
    print(json.dumps(result))


main(*sys.argv[1:])
