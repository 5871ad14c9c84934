"""Reading one Parquet file from an object store: by the caller's thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.fileio.object_input import ObjectInput, Range, open_object
from tablestore_engine.store.files.parquet_input import ParquetInput


class _StoredObject(LocalFileIO):
    """One object."""

    def __init__(self, data: bytes) -> None:
        super().__init__("/")
        self.data = data

    def open_input(self, path: str) -> pa.NativeFile:
        return open_object(lambda count: (len(self.data), self.data[-count:]), self._read)

    def _read(self, ranges: Sequence[Range]) -> Sequence[bytes]:
        return [self.data[start:end] for start, end in ranges]


@pytest.mark.parametrize("rows_max", [1_000, 40_000])
def test_object_decoded_in_parallel_is_read_by_the_calling_thread(
    rows_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow's threads may free bytes of Python while the interpreter ends, which aborts the process."""
    threads, read = set(), ObjectInput.read

    def recorded(source: ObjectInput, size: int = -1) -> bytes:
        threads.add(threading.get_ident())
        return read(source, size)

    monkeypatch.setattr(ObjectInput, "read", recorded)
    sink = pa.BufferOutputStream()
    table = pa.table({name: pa.array(range(30_000), pa.int64()) for name in "abcdefgh"})
    pq.write_table(table, sink, row_group_size=15_000, use_dictionary=False, compression="none")
    fileio = _StoredObject(sink.getvalue().to_pybytes())
    with ParquetInput(fileio, "one.parquet") as parquet:
        found = list(parquet.read_portions(None, rows_max, range(2), parallel=True))
    assert pa.concat_tables(found) == table
    assert threads == {threading.get_ident()}


def test_object_ranges_that_are_asked_for_again_are_kept() -> None:
    """A second fetch asks for what is missing, and what it shares with the first one is not asked for by reads."""
    data, asked = bytes(range(256)) * (1 << 14), list[Range]()

    def read(ranges: Sequence[Range]) -> Sequence[bytes]:
        asked.extend(ranges)
        return [data[start:end] for start, end in ranges]

    source = ObjectInput(lambda count: (len(data), data[-count:]), read)
    first, second = (0, 100), (3 << 20, (3 << 20) + 100)
    source.fetch([first])
    source.fetch([first, second])
    for start, end in (first, second):
        source.seek(start)
        assert source.read(end - start) == data[start:end]
    assert asked == [first, second]
