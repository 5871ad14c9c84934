"""ANALYZE: what is counted, how it is written, and that nobody who follows the table sees a change."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, Table, WriteSpec
from tablestore_engine.errors import RetryError, TablestoreError
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.schema_change import add_column
from tablestore_engine.format.snapshot import CommitKind
from tablestore_engine.store import analyze as analyze_module
from tests.doses import cases
from tests.unit.store.expiry_world import newest
from tests.unit.warehouse.test_logs import NAME, open_both, write
from tests.unit.warehouse.test_logs import table as table_of

BEFORE_1970 = dt.datetime(1969, 12, 31, 23, 59, 59)  # noqa: DTZ001 - a wall clock
SHAPE = pa.schema(
    {
        "id": pa.int64(), "t": pa.string(), "n": pa.int32(), "d": pa.decimal128(20, 3), "f": pa.float64(),
        "day": pa.date32(), "at": pa.timestamp("us"), "b": pa.binary(), "yes": pa.bool_(), "list": pa.list_(pa.int32()),
    }
)  # fmt: skip


def drawn(draw: random.Random, number: int) -> dict[str, Any]:
    """A row with NULLs, empty texts and equal values."""
    row = {
        "t": draw.choice(["", "a", "grün", "日本", "x" * 9]),
        "n": draw.randint(-3, 3),
        "d": Decimal(draw.randint(-9999, 9999)).scaleb(-3),
        "f": draw.choice([-0.5, 0.0, 1e16, 3.25]),
        "day": dt.date(1969, 12, 30) + dt.timedelta(days=draw.randint(0, 4)),
        "at": BEFORE_1970 + dt.timedelta(milliseconds=draw.randint(0, 3000)),
        "b": draw.choice([b"", b"\x00\xff", b"abc"]),
        "yes": draw.random() < 0.5,
        "list": [1, 2],
    }
    return {"id": number, **{name: None if draw.random() < 0.2 else value for name, value in row.items()}}


def made(root: Path, rows: list[dict[str, Any]], key: str | tuple[str, ...] = "id") -> Table:
    """d.t with them."""
    engine = Engine(str(root))
    engine.create_database("d")
    table = engine.create_table("d.t", SHAPE, primary_key=key)
    if rows:
        table.write(pa.Table.from_pylist(rows, SHAPE))
    return table


def put(table: Table, number: int) -> None:
    """A row of NULLs."""
    rows = pa.Table.from_pylist([{"id": number}], table.schema.arrow_schema())
    table.upsert(rows)


@pytest.mark.parametrize("seed", cases(range(40), 3))
def test_random_tables_are_counted_as_an_oracle_counts_them(tmp_path: Path, seed: int) -> None:
    """Upserts and deletes on both kinds of tables: each number from the rows that readers see, by plain Python."""
    draw = random.Random(seed)
    table = made(
        tmp_path, [drawn(draw, number) for number in range(draw.randint(1, 60))], draw.choice(["id", ()])
    )
    if table.schema.is_keyed:
        table.upsert(pa.Table.from_pylist([drawn(draw, number) for number in range(10, 30)], SHAPE))
    table.delete("n > 1 or id = 0")
    found = table.analyze()
    rows = table.to_arrow().to_pylist()
    assert found is not None
    assert found.row_count == len(rows)
    lengths = {"t": len, "b": len}
    texts = {
        "day": lambda v: str((v - dt.date(1970, 1, 1)).days),
        "at": lambda v: f"{v:%Y-%m-%d %H:%M:%S}.{v.microsecond:06d}",
        "yes": lambda v: str(v).lower(),
    }
    for name, column in found.columns.items():
        values = [row[name] for row in rows if row[name] is not None]
        assert column.null_count == len(rows) - len(values), name
        if name == "list":
            assert column.distinct_count is None
            continue
        assert column.distinct_count == len(set(values)), name
        if name in lengths:
            assert (column.min, column.max) == (None, None)
            assert column.max_len == max(map(len, values), default=0)
            assert column.avg_len == -(-sum(map(len, values)) // max(len(values), 1))
        elif values:
            text = texts.get(name, str)
            assert (column.min, column.max) == (text(min(values)), text(max(values))), name
    [stored] = table.system_table("statistics").to_pylist()
    assert stored["mergedRecordCount"] == len(rows)
    newest = table.snapshots()[-1]
    before = table.snapshots()[-2]
    assert newest.commit_kind is CommitKind.ANALYZE
    assert newest.total_record_count == before.total_record_count
    assert table.to_arrow().num_rows == len(rows)
    assert table.verify() == ()


def test_many_distinct_values_are_estimated_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20,000 values with 4,096 hashes: within 6 %, which is four times the mean error; below that exact."""
    monkeypatch.setattr(analyze_module, "_HASHES", 4096)
    count = analyze_module._Distinct()
    for start in range(0, 20_000, 500):
        count.add(pa.array(np.arange(start, start + 1_000)))
    assert len(count._smallest) == 4096
    assert abs(count.estimate() - 20_500) < 0.06 * 20_500


def test_columns_with_nan_or_infinity_have_no_bounds(tmp_path: Path) -> None:
    """Engines order NaN differently; a bound that leaves it out would be wrong for some."""
    for special in (float("nan"), float("inf")):
        table = made(tmp_path / str(special), [{"id": 1, "f": 1.0}, {"id": 2, "f": special}])
        found = table.analyze(["F"])
        assert found is not None
        assert (found.columns["f"].min, found.columns["f"].max, found.columns["f"].distinct_count) == (
            None,
            None,
            2,
        )


def test_bounds_of_nanoseconds_have_every_digit(tmp_path: Path) -> None:
    """Also before 1970; Python's own moments would lose the last three."""
    shape = pa.schema({"id": pa.int64(), "at": pa.timestamp("ns")})
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    table = engine.create_table("d.t", shape, primary_key="id")
    moments = pa.array([-1, 10**18 + 7, 10**18 + 6, None], pa.timestamp("ns"))
    table.upsert(pa.table({"id": [1, 2, 3, 4], "at": moments}, schema=shape))
    found = table.analyze(["at"])
    assert found is not None
    bounds = found.columns["at"]
    assert (bounds.min, bounds.max) == ("1969-12-31 23:59:59.999999999", "2001-09-09 01:46:40.000000007")
    assert (bounds.distinct_count, bounds.null_count) == (3, 1)


def test_nobody_who_follows_the_table_sees_a_change(tmp_path: Path) -> None:
    """Its log, a stream, changes, an unpublished stage and a write that was computed before: as without it."""
    warehouse, system = open_both(tmp_path)
    write(warehouse, (1, "a"), (2, "b"))
    table, log = table_of(warehouse), system.logs["orders"]
    write(warehouse, (3, "c"), stage="s")
    messages, version = list(log.messages), table.latest_snapshot_id()
    position = table.plan_changes(None).step
    assert position is not None
    table.analyze()
    assert log.messages == messages
    assert table.snapshots()[-1].id == version + 1
    assert table.changes(version).num_rows == 0
    following = table.plan_changes(position.after)
    assert table.count_changed_rows(following) == 0
    warehouse.publish_staged(NAME, "s")
    assert [one.snapshot_id for one in log.messages[len(messages) :]] == [table.snapshots()[-1].id]
    assert table.snapshots()[-1].statistics == table.snapshots()[-2].statistics is not None
    assert table.verify() == ()


def test_statistics_stay_until_columns_change_and_expire_with_their_snapshots(tmp_path: Path) -> None:
    """Rows keep them, another schema drops them; a table without a snapshot has none, and nothing is committed."""
    table = made(tmp_path, [])
    assert table.analyze() is None
    put(table, 1)
    table.analyze([])
    put(table, 2)
    assert table.system_table("statistics")["mergedRecordCount"].to_pylist() == [1]
    table.store.alter(lambda schema: add_column(schema, "more", DataType("INT")))
    put(table, 3)
    assert table.system_table("statistics").num_rows == 0
    [path] = list((Path(table.store.location) / "statistics").iterdir())
    assert json.loads(path.read_bytes())["colStats"] == {}
    with pytest.raises(TablestoreError, match="TS1225"):
        table.analyze(["nothing"])
    table.store.expire(newest(1))
    assert not path.exists()


def test_an_alter_while_rows_are_counted_is_no_wrong_statistic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The columns that were counted are not those of the table any more: refused, nothing is committed."""
    table = made(tmp_path, [{"id": 1, "t": "a"}])
    count = analyze_module._count

    def altered(*given: Any) -> Any:
        found = count(*given)
        table.store.alter(lambda schema: add_column(schema, "more", DataType("INT")))
        return found

    monkeypatch.setattr(analyze_module, "_count", altered)
    with pytest.raises(RetryError, match="TS1226"):
        table.analyze()
    assert CommitKind.ANALYZE not in {one.commit_kind for one in table.snapshots()}


def test_a_branch_is_analyzed_for_itself(tmp_path: Path) -> None:
    """Its rows, in its own line."""
    table = made(tmp_path, [{"id": 1}])
    table.create_branch("dev", snapshot=1)
    dev = table.branch("dev")
    dev.write(pa.Table.from_pylist([{"id": 2}], SHAPE), WriteSpec())
    found = dev.analyze(["id"])
    assert found is not None
    assert (found.row_count, table.system_table("statistics").num_rows) == (2, 0)
