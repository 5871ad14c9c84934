"""What a data file says of its columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tablestore_engine.store.files.parquet_output import statistics_columns


def test_paths_of_nested_columns(tmp_path: Path) -> None:
    """As Parquet names them: lists, maps and structures in each other."""
    inner = pa.struct([("n", pa.int64()), ("x", pa.float32()), ("l", pa.list_(pa.float64()))])
    kinds = {"m": pa.map_(pa.string(), inner), "l": pa.list_(inner), "s": inner, "x": pa.float64()}
    schema = pa.schema([pa.field(name, kind) for name, kind in kinds.items()])
    path = tmp_path / "nested.parquet"
    value = {"n": 1, "x": 2.0, "l": [3.0]}
    rows = pa.Table.from_pylist([{"m": [("k", value)], "l": [value], "s": value, "x": 4.0}], schema=schema)
    pq.write_table(rows, path, write_statistics=statistics_columns(schema))
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {one.path_in_schema for one in columns if one.is_stats_set} == {
        *("m.key_value.key", "m.key_value.value.n", "l.list.element.n", "s.n"),
    }
    assert len(columns) == 11
