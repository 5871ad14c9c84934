"""Reading the rows of a plan that fulfil a condition, without the files and row groups that cannot have any.

Steps      equality on the primary key → positions by the key look-up (key_lookup.py); any other condition →
           files (BoundCondition.prune) → row groups and columns that decide (rows/matching_rows.py) → positions;
           then the other columns, of row groups with such rows
INVARIANT  the order of rows is that of the plan, whichever way they are found.
WHY        the columns that decide are read first: the other columns are read of row groups with matches only. On an
           object store a few row groups come with all columns in one request.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.object_input import GAP_BYTES
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.files.file_read import FileReader, OpenFile
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.lookup import KeyCache, hits_in, key_values
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.scan_rows import decode_files, result_schema

if TYPE_CHECKING:
    import polars as pl

    from tablestore_engine.store.rows.row_condition import BoundCondition

_ROWS_MIN = 16_384  # a limit reads no fewer at once: hidden rows may come first


def read_matching(
    fileio: FileIO,
    plan: ScanPlan,
    wanted: BoundCondition,
    columns: Sequence[str] | None = None,
    cache: KeyCache | None = None,
) -> pa.Table:
    """The visible rows that `wanted` is TRUE of, in the order of the plan. Raises what scan_rows.read_plan raises."""
    from tablestore_engine.store.read.index_pruning import prune_by_indexes
    from tablestore_engine.store.read.key_lookup import keys_by_file

    read = _FilteredRead(_reader(fileio, plan, cache), wanted, columns)
    files = prune_by_indexes(fileio, wanted.prune(plan.files), wanted, plan.schema)
    keys = keys_by_file(read.reader, files, wanted)
    if keys is not None:
        parts = fileio.run_together([partial(read.rows_of_keys, *one) for one in keys])
    else:
        parts = decode_files(fileio, files, read.rows_of_file)
    return pa.concat_tables([read.target.empty_table(), *parts])


def read_few(
    fileio: FileIO,
    plan: ScanPlan,
    wanted: BoundCondition,
    columns: Sequence[str],
    rows_max: int,
    cache: KeyCache | None = None,
) -> pa.Table | None:
    """As read_matching; each thread holds a step of read rows. None: more than `rows_max` match."""
    from tablestore_engine.store.read.index_pruning import prune_by_indexes

    read = _FilteredRead(_reader(fileio, plan, cache), wanted, columns)

    def rows_of(file: StoredFile) -> pa.Table | None:
        found, count = [read.target.empty_table()], 0
        for rows in read.steps_of_file(file):
            found.append(rows)
            count += rows.num_rows
            if count > rows_max:
                return None
        return pa.concat_tables(found)

    files = prune_by_indexes(fileio, wanted.prune(plan.files), wanted, plan.schema)
    found = decode_files(fileio, files, rows_of)
    parts = [one for one in found if one is not None]
    if len(parts) < len(found) or sum(one.num_rows for one in parts) > rows_max:
        return None
    return pa.concat_tables([read.target.empty_table(), *parts])


def read_keys(
    reader: FileReader, files: Sequence[StoredFile], wanted: BoundCondition, keys_max: int
) -> pa.Table | None:
    """All visible rows of these files with a key that `wanted` allows, whatever else it asks; None: it allows keys that
    are not known, or more than `keys_max`. Raises what scan_rows.read_plan raises.
    """
    from tablestore_engine.store.read.index_pruning import prune_by_indexes
    from tablestore_engine.store.read.key_lookup import keys_by_file

    files = prune_by_indexes(reader.fileio, wanted.prune(files), wanted, reader.schema)
    asked = keys_by_file(reader, files, wanted)
    if asked is None or sum(keys.height for _, keys in asked) > keys_max:
        return None
    names = reader.schema.field_names
    parts = reader.fileio.run_together([partial(_rows_with, reader, *one, names) for one in asked])
    return pa.concat_tables([reader.schema.arrow_schema().empty_table(), *parts])


def _rows_with(reader: FileReader, file: StoredFile, keys: pl.DataFrame, columns: Sequence[str]) -> pa.Table:
    with reader.open(file) as opened:
        hits = hits_in(opened, keys, None, columns)
        if not len(hits.positions):
            return result_schema(reader.schema, columns).empty_table()
        known = key_values(reader.schema, keys, hits.incoming)
        return opened.read_positions(hits.positions, columns, known=known, parallel=True)


def read_some(
    fileio: FileIO,
    plan: ScanPlan,
    wanted: BoundCondition | None,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    cache: KeyCache | None = None,
) -> Iterator[pa.RecordBatch]:
    """The same as a stream that holds a step of rows (row_budget) and ends after `limit` rows.

    Files after the last row are not opened. No batch is empty.
    """
    left = limit
    for rows in _blocks(_reader(fileio, plan, cache), plan, wanted, columns, limit):
        found = rows.slice(0, left)
        yield from (batch for batch in found.to_batches() if batch.num_rows)
        left = None if left is None else left - found.num_rows
        if left == 0:
            return


def _blocks(
    reader: FileReader,
    plan: ScanPlan,
    wanted: BoundCondition | None,
    columns: Sequence[str] | None,
    limit: int | None,
) -> Iterator[pa.Table]:
    """Rows of the plan, a step at a time."""
    if limit == 0:
        return
    if wanted is None:
        for file in (one for one in plan.files if one.visible_rows):
            step = step_rows([file]) if limit is None else min(step_rows([file]), max(limit, _ROWS_MIN))
            names = result_schema(plan.schema, columns).names
            yield from reader.read_visible_blocks(file, names, rows_max=step, parallel=True)
        return
    from tablestore_engine.store.read.index_pruning import prune_by_indexes
    from tablestore_engine.store.read.key_lookup import keys_by_file

    read = _FilteredRead(reader, wanted, columns)
    files = prune_by_indexes(reader.fileio, wanted.prune(plan.files), wanted, plan.schema)
    keys = keys_by_file(reader, files, wanted)
    if keys is not None:
        yield from (read.rows_of_keys(*one) for one in keys)
        return
    for file in files:
        yield from read.steps_of_file(file)


class _FilteredRead:
    """`target`: the result; `rest`: its columns that do not decide."""

    def __init__(self, reader: FileReader, wanted: BoundCondition, columns: Sequence[str] | None) -> None:
        self.reader, self.wanted = reader, wanted
        self.target = result_schema(reader.schema, columns)
        self.rest = [name for name in self.target.names if name not in wanted.columns]
        self._needed = _in_table_order(reader.schema, {*self.target.names, *wanted.columns})

    def rows_of_keys(self, file: StoredFile, keys: pl.DataFrame) -> pa.Table:
        """Those of the rows with these keys that the whole condition is TRUE of."""
        rows = _rows_with(self.reader, file, keys, self._needed)
        return rows.filter(pa.array(self.wanted.mask(rows))).select(self.target.names)

    def rows_of_file(self, file: StoredFile) -> pa.Table:
        from tablestore_engine.store.rows.matching_rows import possible_groups

        with self.reader.open(file) as opened:
            return self._rows(opened, possible_groups(opened, self.wanted), parallel=True)

    def steps_of_file(self, file: StoredFile) -> Iterator[pa.Table]:
        """The same, a step of read rows (row_budget) at a time: row groups, or parts of a large one."""
        from tablestore_engine.store.rows.matching_rows import possible_groups

        step = step_rows([file])
        with self.reader.open(file) as opened:
            for portion in opened.parquet.portions(step, possible_groups(opened, self.wanted)):
                if not opened.is_large(portion, step):
                    yield self._rows(opened, portion, parallel=True)
                    continue
                for rows in opened.read_parts(portion[0], self._needed, rows_max=step):
                    yield rows.filter(pa.array(self.wanted.mask(rows))).select(self.target.names)

    def _rows(self, opened: OpenFile, groups: Sequence[int], *, parallel: bool) -> pa.Table:
        from tablestore_engine.store.rows.matching_rows import find_matches, read_more

        if not groups:
            return self.target.empty_table()
        opened.prefetch(groups, self._needed, GAP_BYTES)
        found = find_matches(opened, self.wanted, groups, parallel=parallel)
        if not self.rest or not found.rows.num_rows:
            return found.rows.select(self.target.names) if not self.rest else self.target.empty_table()
        more = read_more(opened, found, self.rest, parallel=parallel)
        both = [
            found.rows.column(name) if name in self.wanted.columns else more.column(name)
            for name in self.target.names
        ]
        return pa.Table.from_arrays(both, schema=self.target)


def _reader(fileio: FileIO, plan: ScanPlan, cache: KeyCache | None) -> FileReader:
    return FileReader(fileio, plan.schema, None if cache is None else cache.footers)


def _in_table_order(schema: TableSchema, names: set[str]) -> list[str]:
    return [name for name in schema.field_names if name in names]
