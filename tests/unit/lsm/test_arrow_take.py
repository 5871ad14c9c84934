"""Taking rows of columns that are too large for one array, with a small limit in the place of 2 GiB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.lsm import arrow_take
from tablestore_engine.lsm.arrow_take import take_all, take_rows
from tablestore_engine.lsm.key_order import order_frame

ROW = st.tuples(
    st.integers(0, 9),
    st.none() | st.text(max_size=30),
    st.none() | st.lists(st.none() | st.text(max_size=5), max_size=3),
)
SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string()), ("l", pa.list_(pa.string()))])


@given(st.lists(st.lists(ROW, max_size=8), min_size=1, max_size=5), st.data(), st.integers(1, 200))
def test_it_is_take(chunks: list[list[tuple[object, ...]]], data: st.DataObject, limit: int) -> None:
    """For any chunks, numbers and limit the rows are those of a plain take, also when columns are taken in threads."""
    rows = pa.concat_tables(
        [
            pa.Table.from_pylist([dict(zip("ntl", row, strict=True)) for row in rows], SCHEMA)
            for rows in chunks
        ]
    )
    count = rows.num_rows
    at = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=20)) if count else [], np.int64)
    taken = take_rows(rows, at, array_bytes=limit)
    assert taken.to_pylist() == rows.take(pa.array(at)).to_pylist()
    assert taken.schema == rows.schema
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_take, "_THREADED_ROWS", 0)
        patch.setattr(arrow_take, "ARRAY_BYTES", limit)  # above it: as take_rows
        assert take_all(rows, at).equals(taken)


@pytest.mark.nightly
def test_a_column_beyond_32_bit_offsets() -> None:
    """2.2 GiB of text in one column: taken and compared, which a plain take and one array cannot."""
    texts = pa.array(["x" * 8_000 + str(n) for n in range(64)])
    chunk = texts.take(pa.array(np.arange(50_000) % 64))
    rows = pa.table({"t": pa.chunked_array([chunk] * 6)})
    at = np.arange(rows.num_rows)[::-1].copy()
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        rows.take(pa.array(at))
    taken = take_rows(rows, at)
    assert taken.num_rows == rows.num_rows
    assert taken.column("t")[0] == rows.column("t")[-1]
    assert taken.column("t")[-1] == rows.column("t")[0]
    assert order_frame([rows.column("t")]).height == rows.num_rows
