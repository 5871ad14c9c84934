"""`bucket` = `auto`: the number of buckets of a new table by the size of its first rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import FixRequest
from tablestore_engine.warehouse.statements.alter_statement import _set_options
from tablestore_engine.warehouse.write import bucket_number
from tablestore_engine.warehouse.write.bucket_number import BUCKET_BYTES, BUCKETS_MAX, pick_bucket_number

AUTO = {"bucket": "auto"}


def test_the_number_grows_with_the_bytes_within_its_bounds() -> None:
    """One for each 256 MB that is begun, never none, never more than the most."""
    sizes = {0: 1, 1: 1, BUCKET_BYTES: 1, BUCKET_BYTES + 1: 2, 5 * BUCKET_BYTES: 5, 10**13: BUCKETS_MAX}
    assert {size: pick_bucket_number(size) for size in sizes} == sizes


@pytest.mark.parametrize(
    ("partition_by", "buckets"), [((), 4), (("P",), 2)], ids=["one partition", "two partitions"]
)
def test_the_first_rows_decide_and_later_writes_keep_the_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition_by: tuple[str, ...], buckets: int
) -> None:
    """By the bytes of a partition; the schema has the number, the report says it once, `auto` changes nothing later."""
    rows = pa.table(
        {"id": pa.array(range(200), pa.int64()), "p": pa.array([n % 2 for n in range(200)], pa.int64())}
    )
    monkeypatch.setattr(bucket_number, "BUCKET_BYTES", rows.nbytes // 4)
    with Engine(str(tmp_path)) as engine:
        table = TableSpec(("id", *(name.lower() for name in partition_by)), partition_by, options=AUTO)
        first = engine.write("demo.t", rows, WriteSpec(table=table))
        assert first.summary().endswith(f" · bucket=auto: {buckets} buckets")
        assert engine.table("demo.t").schema.options["bucket"] == str(buckets)
        again = engine.write(
            "demo.t", pa.concat_tables([rows] * 9), WriteSpec(table=table, duplicates="last")
        )
        assert "bucket=auto" not in again.summary()
        assert engine.table("demo.t").schema.options["bucket"] == str(buckets)
        assert engine.table("demo.t").count() == 200


@pytest.mark.parametrize(
    ("keys", "options", "number"),
    [((), {}, "-1"), ((), {"bucket-key": "id"}, "1"), (("id",), {}, "1")],
    ids=["no key", "bucket key", "primary key"],
)
def test_an_empty_table_gets_the_documented_number(
    tmp_path: Path, keys: tuple[str, ...], options: dict[str, str], number: str
) -> None:
    """Without rows there is nothing to measure."""
    with Engine(str(tmp_path)) as engine:
        engine.create_table(
            "demo.t", pa.schema([("id", pa.int64())]), primary_key=keys, options={**AUTO, **options}
        )
        assert engine.table("demo.t").schema.options["bucket"] == number


def test_other_words_and_a_change_to_auto_are_refused(tmp_path: Path) -> None:
    """`auto` is an answer at creation only."""
    with Engine(str(tmp_path)) as engine:
        with pytest.raises(FixRequest, match="TS1003"):
            engine.create_table("demo.t", pa.schema([("id", pa.int64())]), options={"bucket": "many"})
        engine.create_table("demo.t", pa.schema([("id", pa.int64())]), primary_key="id")
        with pytest.raises(FixRequest, match="TS1022"):
            _set_options(engine.table("demo.t").schema, {"bucket": "auto"})
