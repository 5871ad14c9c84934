"""Stored files of one bucket, read side by side: the rows of one key range after the other.

CHANGE     how one key range is read
Steps      files whose key ranges do not meet become one chain → each chain is read in blocks → lsm.range_merge
INVARIANT  files that lie behind a cut are not opened yet, those before it are closed: one file of each chain is open.
INVARIANT  when the files together are one step there is one range: everything is read at once, as if nobody had cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tablestore_engine.lsm.key_order import order_columns
from tablestore_engine.lsm.range_merge import Piece, chains_of, merge_ranges, share_rows
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.lookup import key_range

FilePiece = Piece[StoredFile, pa.Table]


def read_ranges(
    reader: FileReader,
    files: Sequence[StoredFile],
    columns: Sequence[str] | None = None,
    *,
    keep: Sequence[str] = (),
    visible: bool = False,
) -> Iterator[list[FilePiece]]:
    """Rows of a keyed table's files; `columns` have the key columns among them, or are None.

    visible   rows that vectors hide are left out; then `first` of a piece says nothing. Raises as FileReader, FixData
    TS1697 for a file that is not sorted by key.
    """
    chains = file_chains(reader, files)
    counts = [sum(_rows(file, visible=visible) for file in chain) for chain in chains]
    shares = share_rows(counts, step_rows(files))
    return merge_ranges(
        [
            read_chain(reader, chain, columns, keep=keep, rows_max=share, visible=visible)
            for chain, share in zip(chains, shares, strict=True)
        ],
        shares,
    )


def file_chains(reader: FileReader, files: Sequence[StoredFile]) -> list[list[StoredFile]]:
    """The files in chains by the key ranges of their metadata; files without rows are in none."""
    there = [file for file in files if file.meta.row_count]
    ranges = [key_range(reader.schema, file) for file in there]
    return [[there[number] for number in chain] for chain in chains_of(ranges)]


def read_chain(
    reader: FileReader,
    chain: Sequence[StoredFile],
    columns: Sequence[str] | None,
    *,
    keep: Sequence[str] = (),
    rows_max: int,
    visible: bool = False,
) -> Iterator[FilePiece]:
    """The rows of files that follow each other, block by block."""
    names = reader.schema.trimmed_primary_keys
    for file in chain:
        if visible:
            for rows in reader.read_visible_blocks(file, columns, keep=keep, rows_max=rows_max):
                yield Piece(file, 0, order_columns(rows, names), rows)
        else:
            for block in reader.read_blocks(file, columns, keep=keep, rows_max=rows_max):
                yield Piece(file, block.first, order_columns(block.rows, names), block.rows)


def _rows(file: StoredFile, *, visible: bool) -> int:
    return file.visible_rows if visible else file.meta.row_count
