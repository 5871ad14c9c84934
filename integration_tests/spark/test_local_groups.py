"""Contributions that the driver adds up are those of Spark: random signed rows of every type and function."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.queryplan.delta_root import COUNT, DISTINCT, GROUP, MAX, MIN, SUM, GroupColumn
from tablestore_engine.queryplan.plan_nodes import Place
from tablestore_engine.spark.arrow_frame import frame_of_rows
from tablestore_engine.spark.delta_query import contributions
from tablestore_engine.spark.fetch_rows import collect_arrow
from tablestore_engine.spark.local_groups import local_contributions, local_net
from tablestore_engine.spark.net_rows import net_rows
from tests.doses import cases

X = Place((), "x", None)
WHOLE = {"byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64()}
NUMBERS = WHOLE | {"decimal(9,2)": pa.decimal128(9, 2), "decimal(38,0)": pa.decimal128(38, 0)}
TYPES = NUMBERS | {
    "boolean": pa.bool_(), "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"), "string": pa.string(),
}  # fmt: skip


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One session for all rows."""
    settings = SparkSettings("local[2]", {"spark.sql.shuffle.partitions": "1"})
    with Engine(str(tmp_path_factory.mktemp("groups")), spark=settings) as engine:
        yield engine


def value(chance: random.Random, type_: str) -> object:
    """Often equal to another one, sometimes NULL or at an end of its type."""
    if chance.random() < 0.2:
        return None
    number = chance.choice([-3, -1, 0, 0, 1, 2, 5])
    if type_ in WHOLE:
        bits = WHOLE[type_].bit_width
        return chance.choice([number, number, number, (1 << (bits - 1)) - 1, -(1 << (bits - 1))])
    if type_ == "decimal(38,0)":
        return chance.choice([Decimal(number), Decimal("9" * 36), Decimal("-" + "9" * 36)])
    if type_ == "decimal(9,2)":
        return Decimal(number) / 4
    return {
        "boolean": number > 0, "date": date(2024, 3, number + 10),
        "timestamp": datetime(2024, 3, number + 10, tzinfo=UTC), "timestamp_ntz": datetime(2024, 3, number + 10),  # noqa: DTZ001
        "string": ["", "a", "A", "b", "ä", "\U0001f600", "\uffff"][number],
    }[type_]  # fmt: skip


def columns(chance: random.Random, *, is_total: bool) -> list[GroupColumn]:
    """Of a result."""
    condition = Place((), "f", None)
    found = [GroupColumn(GROUP, (X,), type=chance.choice([*TYPES])) for _ in range(0 if is_total else 2)]
    for how in chance.choices([COUNT, SUM, MIN, MAX, DISTINCT], k=4):
        type_ = chance.choice([*(NUMBERS if how == SUM else TYPES)])
        is_negative = how == SUM and type_ == "long" and chance.random() < 0.3
        values = (X,) * {COUNT: chance.randrange(3), DISTINCT: chance.randrange(1, 3)}.get(how, 1)
        found.append(GroupColumn(how, values, chance.choice([None, condition]), type_, is_negative))
    return found


def signed_rows(chance: random.Random, groups: list[GroupColumn], count: int) -> pa.Table:
    """Values, conditions and signs."""
    made: dict[str, pa.Array] = {}
    for at, one in enumerate(groups):
        for number in range(len(one.values)):
            type_ = str(one.type)
            made[f"x{at}_{number}"] = pa.array([value(chance, type_) for _ in range(count)], TYPES[type_])
        if one.condition is not None:
            made[f"f{at}"] = pa.array(
                [chance.choice([True, True, False, None]) for _ in range(count)], pa.bool_()
            )
    return pa.table({**made, "s": pa.array([chance.choice([1, -1]) for _ in range(count)], pa.int32())})


def frame(engine: Engine, rows: pa.Table) -> DataFrame:
    """The rows in Spark, with these very types."""
    fields = [
        StructField(one.name, from_arrow_type(one.type, prefer_timestamp_ntz=True)) for one in rows.schema
    ]
    return frame_of_rows(engine.spark, rows, StructType(fields))


def bag(rows: pa.Table) -> Counter[tuple[object, ...]]:
    """Rows, whatever their order; Spark has one of a total over nothing."""
    return Counter(one for one in zip(*(c.to_pylist() for c in rows.columns), strict=True))


@pytest.mark.parametrize("seed", cases(range(30), 10))
def test_sums_extremes_and_distinct_values(engine: Engine, seed: int) -> None:
    """Of groups and totals, of no rows and many, with both signs of one row."""
    chance = random.Random(seed)
    groups = columns(chance, is_total=seed % 3 == 0)
    rows = signed_rows(chance, groups, chance.choice([0, 1, 5, 60]) if seed else 60)
    if rows.num_rows > 4:
        rows = pa.concat_tables([rows, rows.slice(0, 3)])
    found = local_contributions(rows, groups)
    by_spark = contributions(frame(engine, rows), groups).where("n is not null")
    wanted = collect_arrow(by_spark)
    assert {one.name: one.type for one in found.schema} == {one.name: one.type for one in wanted.schema}
    assert bag(found.select(wanted.column_names)) == bag(wanted)


def test_a_sum_without_room_is_not_known() -> None:
    """Of 39 digits; 38 of them fit."""
    most = Decimal("9" * 38)
    rows = pa.table(
        {"x0_0": pa.array([most, Decimal(1)], pa.decimal128(38, 0)), "s": pa.array([1, 1], pa.int32())}
    )
    found = local_contributions(rows, [GroupColumn(SUM, (X,), type="decimal(38,0)")])
    assert found.to_pylist() == [{"n": 2, "v0": None, "m0": 2, "c0": 2}]
    found = local_contributions(rows.slice(0, 1), [GroupColumn(SUM, (X,), type="decimal(38,0)")])
    assert found.column("v0").to_pylist() == [most]


@pytest.mark.parametrize("seed", cases(range(12), 4))
def test_rows_with_both_signs_cancel(engine: Engine, seed: int) -> None:
    """Rows of a result; floats are Spark's."""
    chance = random.Random(seed)
    types = chance.choices([*TYPES], k=3)
    rows = signed_rows(chance, [GroupColumn(GROUP, (X,), type=one) for one in types], 50)
    found = local_net(rows)
    assert found is not None
    assert bag(found) == bag(collect_arrow(net_rows(frame(engine, rows))))
    assert local_net(rows.add_column(0, "f", pa.array([0.0] * rows.num_rows))) is None
