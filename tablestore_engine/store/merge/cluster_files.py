"""Compaction of append-only files that sorts their rows along a clustering order; readers see no difference.

Steps      a sample → the curve → if all rows are a step: sorted and written; else each block is cut by ranges of the
           curve into files of this process's scratch → range after range is sorted and written
INVARIANT  all visible rows of the files, and no others, are in the new ones; vectors of the files go.
Memory     two steps of rows (row_budget), however large the files, also where all rows have one place on the curve:
           then they are written in pieces that are sorted by themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa

from tablestore_engine.format.cluster_order import ClusterOrder
from tablestore_engine.format.data_file import SOURCE_COMPACT
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.store.files.bucket_state import BucketChange, BucketState
from tablestore_engine.store.files.data_files import DataFiles
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.scratch_folder import open_scratch_folder
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.rows.cluster_curve import ClusterCurve

SAMPLE_ROWS = 100_000
RANGES_MAX = 256  # open files of the scratch


def cluster_files(
    files: DataFiles, state: BucketState, names: Collection[str], order: ClusterOrder, level: int
) -> BucketChange:
    """The named files as one sorted run on `level`. Raises what reading a file can, OSError of a full scratch."""
    taken = [file for file in state.files if file.meta.file_name in names]
    first = min(file.meta.min_sequence_number for file in taken)
    with files.open_append(state, first, source=SOURCE_COMPACT, level=level) as output:
        for rows in _sorted(files, taken, order):
            output.add(rows)
    return state.rewritten([file.meta for file in taken], output.metas)


def _sorted(files: DataFiles, taken: Sequence[StoredFile], order: ClusterOrder) -> Iterator[pa.Table]:
    budget, total = step_rows(taken), sum(file.visible_rows for file in taken)
    if total <= budget:
        rows = pa.concat_tables([files.reader.read_visible(file) for file in taken])
        if rows.num_rows:
            yield ClusterCurve.of_sample(order, _every(rows, total)).sort(rows)
        return
    parts = [_every(rows, total) for rows in _blocks(files, taken, budget, order.columns)]
    sample = pa.concat_tables(parts)
    curve = ClusterCurve.of_sample(order, sample)
    numbers = np.sort(curve.numbers(sample))
    count = min(RANGES_MAX, 2 * -(-total // budget))
    cuts = np.unique(numbers[[len(numbers) * at // count for at in range(1, count)]])
    folder = open_scratch_folder("clustered-")
    schema = files.schema.arrow_schema()
    _spill(_blocks(files, taken, budget), curve, cuts, Path(folder.path), schema)
    for at in range(len(cuts) + 1):
        yield from (curve.sort(rows) for rows in _pieces(Path(folder.path, str(at)), budget))


def _blocks(
    files: DataFiles, taken: Sequence[StoredFile], rows_max: int, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    for file in taken:
        yield from files.reader.read_visible_blocks(file, columns, rows_max=rows_max)


def _every(rows: pa.Table, total: int) -> pa.Table:
    """Rows at equal distances, SAMPLE_ROWS of `total`."""
    return take_rows(rows, np.arange(0, rows.num_rows, max(1, total // SAMPLE_ROWS)))


def _spill(
    blocks: Iterator[pa.Table], curve: ClusterCurve, cuts: np.ndarray, folder: Path, schema: pa.Schema
) -> None:
    """A file for each range of the curve, named by its number."""
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with ExitStack() as stack:
        sinks = [
            stack.enter_context(pa.ipc.new_stream(str(folder / str(at)), schema, options=options))
            for at in range(len(cuts) + 1)
        ]
        for rows in blocks:
            range_of = np.searchsorted(cuts, curve.numbers(rows), side="right")
            order = np.argsort(range_of, kind="stable")
            ends = np.searchsorted(range_of[order], np.arange(len(sinks) + 1))
            moved = take_rows(rows, order).cast(schema)
            for sink, begin, end in zip(sinks, ends[:-1], ends[1:], strict=True):
                if end > begin:
                    sink.write_table(moved.slice(begin, end - begin))


def _pieces(path: Path, rows_max: int) -> Iterator[pa.Table]:
    """The rows of a range, once; twice the budget, which a range rarely reaches, at a time."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as stream:
        for batch in stream:
            if waiting and count + batch.num_rows > 2 * rows_max:
                yield pa.Table.from_batches(waiting)
                waiting, count = [], 0
            waiting.append(batch)
            count += batch.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting)
    path.unlink()
