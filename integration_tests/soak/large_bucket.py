"""One bucket with more text than 32-bit offsets can address: loaded, updated, compacted, read back and deleted.

Steps      1 loads of LOAD_ROWS  2 an update of every STEP-th row, its changelog against what was written
           3 compaction to one level  4 every row read back in batches  5 a write that deletes, read back again
INVARIANT  the expected text of a row follows from its id and its version; no row is held for later.
Memory     some loads; a compaction holds a step of rows (decision 0022), a load of LOAD_ROWS its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import new_schema
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteRequest

TEXT_BYTES = 8_000
LOAD_ROWS = 30_000
STEP = 97
_CHECKED_ROWS = 8_192
Ids = npt.NDArray[np.int64]
_SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])
_OPTIONS = {"bucket": "1", "deletion-vectors.enabled": "true", "changelog-producer": "lookup"}


def fill_bucket(rows: int, folder: Path) -> dict[str, int]:
    """Raises AssertionError at the first row that is not what was written."""
    store = TableStore(LocalFileIO(str(folder)), f"{folder}/soak.db/large")
    assert store.context.schemas.claim(new_schema(_SCHEMA, primary_keys=["id"], options=_OPTIONS))
    for first in range(0, rows, LOAD_ROWS):
        store.write(WriteRequest(_rows(np.arange(first, min(first + LOAD_ROWS, rows)), version=0)))
    updated = np.arange(0, rows, STEP)
    store.write(WriteRequest(_rows(updated, version=1)))
    _check_changelog(store, updated)
    store.compact(full=True)
    _check_rows(store, rows, gone=0)
    gone = np.arange(1, rows, STEP)
    kinds = pa.array(np.full(len(gone), RowKind.DELETE, np.int8))
    store.write(WriteRequest(_rows(gone, version=0), kinds=kinds))
    _check_rows(store, rows, gone=len(gone))
    assert store.verify() == ()
    return {"rows": rows, "bytes of text": rows * TEXT_BYTES, "updated": len(updated), "deleted": len(gone)}


def _rows(ids: Ids, *, version: int) -> pa.Table:
    return pa.table([pa.array(ids, pa.int64()), _texts(pa.array(ids, pa.int64()), version)], schema=_SCHEMA)


def _texts(ids: pa.Array, version: int) -> pa.Array:
    """16 characters that are the row's own, repeated."""
    own = pc.binary_join_element_wise(
        pc.utf8_lpad(pc.cast(ids, pa.string()), 14, "0"), pa.scalar(str(version)), "-"
    )
    return pc.binary_repeat(own, TEXT_BYTES // 16)


def _check_changelog(store: TableStore, updated: Ids) -> None:
    newest = store.latest()
    assert newest is not None
    before, after = RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER
    seen = {before: 0, after: 0}
    for batch in ChangelogReader(store.context).read(newest):
        kinds = batch.rows.column(ROW_KIND_COLUMN)
        for kind, version in ((before, 0), (after, 1)):
            part = batch.rows.filter(pc.equal(kinds, int(kind)))
            seen[kind] += part.num_rows
            _check_texts(part, version)
    assert seen == {before: len(updated), after: len(updated)}


def _check_rows(store: TableStore, rows: int, *, gone: int) -> None:
    count = total = 0
    for batch in store.read_batches(store.plan_scan()):
        for part in pa.Table.from_batches([batch]).to_batches(max_chunksize=_CHECKED_ROWS):
            ids = np.asarray(part.column("id"))
            count, total = count + len(ids), total + int(ids.sum())
            is_new = pa.array(ids % STEP == 0)
            _check_texts(part.filter(is_new), 1)
            _check_texts(part.filter(pc.invert(is_new)), 0)
    expected = np.arange(rows)
    if gone:
        expected = expected[expected % STEP != 1]
    assert (count, total) == (len(expected), int(expected.sum()))


def _check_texts(rows: pa.Table | pa.RecordBatch, version: int) -> None:
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    for part in table.select(["id", "text"]).to_batches(max_chunksize=_CHECKED_ROWS):
        wanted = _texts(part.column("id"), version)
        assert pc.cast(part.column("text"), pa.string()).equals(wanted)
