"""What went and what came between two sets of stored rows, in bounded memory, in an order that never varies.

Steps      rows of both sides → as many passes as keep one near PASS_ROWS: a pass takes the rows whose hash falls to
           it → equal rows cancel out → what went, place by place, then what came
INVARIANT  rows of one key, and equal rows without a key, fall to one pass, where deletes come first: who applies the
           changes in their order gets the new rows, also where a key moved to another bucket.
INVARIANT  so many changes, in this order, whoever reads them, whenever: they are compared in the schema of their
           snapshot, not in a later reader's, and the hash is the format's. Logs and stored positions count on it.
DANGER     PASS_ROWS is part of the order: another value, and a reader that was stopped within a snapshot goes wrong.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.format.bucket import bucket_of, hash_rows
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile

PASS_ROWS = 1_000_000  # of both sides together: twice a step
Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Difference:
    """`gone` and `came` are read as `reader` has it; only their visible rows count. `keys`: () without a key."""

    reader: FileReader
    gone: Sequence[StoredFile]
    came: Sequence[StoredFile]
    keys: Sequence[str]

    @cached_property
    def _hashed(self) -> tuple[DataField, ...]:
        """Columns whose bytes are equal where values are: no floats (NaN has many), nothing nested."""
        schema = self.reader.schema
        fields = schema.fields_of(self.keys or schema.field_names)
        return tuple(one for one in fields if one.type.is_atomic and one.type.root not in ("FLOAT", "DOUBLE"))

    @cached_property
    def passes(self) -> int:
        """How often the files are read."""
        rows = sum(file.visible_rows for file in (*self.gone, *self.came))
        return max(1, -(-rows // PASS_ROWS)) if self._hashed else 1

    def read(self) -> Iterator[tuple[StoredFile, pa.Table]]:
        """Changed rows with `_ROW_KIND`, and a file of the place (partition, bucket) that they lie in."""
        for number in range(self.passes):
            before, after = self._rows(self.gone, number), self._rows(self.came, number)
            gone, came = changed_rows(before.rows, after.rows)
            yield from before.by_place(gone, RowKind.DELETE)
            yield from after.by_place(came, RowKind.INSERT)

    def _rows(self, files: Sequence[StoredFile], number: int) -> _Side:
        tables = [self.reader.schema.arrow_schema().empty_table()]
        places = [np.empty(0, np.int64)]
        for at, file in enumerate(files):
            for rows in self.reader.read_visible_blocks(file, rows_max=step_rows([file])):
                mine = self._of_pass(rows, number)
                tables.append(mine)
                places.append(np.full(mine.num_rows, at, np.int64))
        return _Side(pa.concat_tables(tables), np.concatenate(places), files)

    def _of_pass(self, rows: pa.Table, number: int) -> pa.Table:
        if self.passes == 1:
            return rows
        columns = [rows.column(field.name) for field in self._hashed]
        hashes = hash_rows(columns, [field.type for field in self._hashed])
        return rows.filter(pa.array(bucket_of(hashes, self.passes) == number))


@dataclass(frozen=True)
class _Side:
    """`file_of`: for each row the number of its file."""

    rows: pa.Table
    file_of: Index
    files: Sequence[StoredFile]

    def by_place(self, at: Index, kind: RowKind) -> Iterator[tuple[StoredFile, pa.Table]]:
        """The rows of these numbers, in order, place after place."""
        first_of: dict[tuple[bytes, int], StoredFile] = {}
        place_of = np.empty(len(self.files), np.int64)
        order = {
            place: number
            for number, place in enumerate(sorted({(one.partition_bytes, one.bucket) for one in self.files}))
        }
        for number, file in enumerate(self.files):
            place = (file.partition_bytes, file.bucket)
            first_of.setdefault(place, file)
            place_of[number] = order[place]
        mine = place_of[self.file_of[at]] if len(at) else at
        for place, number in order.items():
            rows = at[mine == number]
            if len(rows):
                yield first_of[place], with_kind(take_rows(self.rows, rows), kind)


def with_kind(rows: pa.Table, kind: RowKind) -> pa.Table:
    """The rows with `_ROW_KIND` as last column."""
    return rows.append_column(ROW_KIND_COLUMN, pa.array(np.full(rows.num_rows, kind, np.int8)))


def changed_rows(before: pa.Table, after: pa.Table) -> tuple[Index, Index]:
    """Numbers of the rows of `before` that `after` has fewer times, and the reverse; ascending.

    The k-th occurrence of a row in one table cancels the k-th in the other. NULL equals NULL, NaN equals NaN,
    -0.0 differs from 0.0.
    """
    from tablestore_engine.store.rows.row_equality import numbered_rows

    old, new = numbered_rows(before), numbered_rows(after)
    gone = old.join(new, on=list(old.columns[1:]), how="anti", nulls_equal=True).get_column("#row")
    came = new.join(old, on=list(new.columns[1:]), how="anti", nulls_equal=True).get_column("#row")
    return gone.sort().to_numpy().astype(np.int64), came.sort().to_numpy().astype(np.int64)
