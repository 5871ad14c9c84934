"""Changed rows that the driver reads for a plan are those that Spark reads from the changelog's files."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.api import ChangesBetween, Engine, SparkSettings, TableSpec, TableVersion, WriteSpec
from tablestore_engine.spark import local_changes
from tablestore_engine.spark.changed_rows_text import ChangedKind
from tablestore_engine.spark.local_changes import LocalChanges
from tests.doses import cases

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), [-128, 0, 127]),
    "small": (pa.int16(), [-5, 5]),
    "number": (pa.int32(), [-(2**31), 7]),
    "big": (pa.int64(), [-(2**63), 2**63 - 1]),
    "real": (pa.float32(), [0.0, -0.0, float("nan"), 1.5]),
    "double": (pa.float64(), [0.0, -0.0, float("nan"), float("-inf"), 0.1]),
    "price": (pa.decimal128(38, 18), [Decimal("1.000000000000000001"), Decimal(-2)]),
    "name": (pa.string(), ["", "ä", "A", "a"]),
    "raw": (pa.binary(), [b"", b"\x00\xff"]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 14)]),
    "clock": (
        pa.timestamp("us"),
        [-2_208_988_799_999_999, 1_710_037_800_000_000],
    ),  # 1900-01-01, a gap of New York
    "moment": (pa.timestamp("us", "UTC"), [dt.datetime(2024, 3, 10, 7, 30, tzinfo=dt.UTC)]),
    "parts": (pa.list_(pa.float64()), [[], [0.0], [-0.0, None]]),
    "inside": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        [{"a": 1, "b": None}, {"a": None, "b": "x"}],
    ),
    "pairs": (pa.map_(pa.string(), pa.int64()), [[("k", 1)], []]),
}
NAME = "demo.typed"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A table of every type, changed in four snapshots, with a column that came and one that grew on the way."""
    conf = {"spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": "America/New_York"}
    folder: Path = tmp_path_factory.mktemp("typed")
    with Engine(str(folder), spark=SparkSettings("local[2]", conf)) as opened:
        draw = random.Random(20261130)
        opened.write(NAME, _rows(draw, range(40)), WriteSpec(table=TableSpec(primary_key=("id",))))
        opened.write(NAME, _rows(draw, range(20, 60)), WriteSpec())
        opened.sql(f"alter table {NAME} add columns (late string)")
        opened.sql(f"alter table {NAME} alter column small type int")
        opened.sql(f"update {NAME} set late = 'now' where id < 10")
        opened.table(NAME).delete("id between 5 and 8")
        yield opened


def _rows(draw: random.Random, ids: range) -> pa.Table:
    """Some ids twice as likely to keep a value: a change may be none."""
    columns = {
        name: pa.array([draw.choice([None, *values]) for _ in ids], type_)
        for name, (type_, values) in TYPES.items()
    }
    return pa.table({"id": pa.array(list(ids), pa.int64()), **columns})


def _counted(rows: list[Any]) -> Counter[str]:
    """By their texts: NaN equals NaN, -0.0 is not 0.0, and maps have a text."""
    return Counter(repr(tuple(row)) for row in rows)


def _range(engine: Engine) -> tuple[int, int]:
    return 1, engine.table(NAME).latest_snapshot_id() or 0


def _by_spark(engine: Engine, names: list[str]) -> tuple[Counter[str], Counter[str]]:
    """Rows before, and rows after."""
    since, until = _range(engine)
    source = f"demo__changes_{since}_to_{until}.typed"
    frame = engine.query(f"select {', '.join(names)}, _row_kind from {source}")
    before = frame.where("_row_kind in ('-U', '-D')").drop("_row_kind")
    return _counted(before.collect()), _counted(
        frame.where("_row_kind in ('+I', '+U')").drop("_row_kind").collect()
    )


def _local(engine: Engine) -> local_changes.LocalRows:
    found = LocalChanges(engine._warehouse.resolver._names).find(
        NAME, TableVersion(changes=ChangesBetween(*_range(engine)))
    )
    assert found is not None
    return found


@pytest.mark.parametrize("name", cases([*TYPES, "late"], 6))
def test_a_column_has_the_values_that_spark_reads(engine: Engine, name: str) -> None:
    """Rows before are all there; of the others those are left out that are there as often before as after."""
    before, after = _by_spark(engine, ["id", name])
    local, session = _local(engine), engine.spark
    past = local.frame(session, ["id", name], ChangedKind.PAST)
    assert _counted(past.collect()) == before
    differing = set(_counted(local.frame(session, ["id", name], ChangedKind.BOTH).collect()))
    changed = {row for row in before | after if before[row] != after[row]}
    assert changed <= differing <= set(before | after)
    if name not in ("parts", "inside", "pairs"):
        assert differing == changed
    net: Counter[str] = Counter()
    for *values, sign in local.frame(session, ["id", name], ChangedKind.SIGNED).collect():
        net[repr(tuple(values))] += sign
    assert +net == after - before
    assert -net == before - after


def test_types_are_those_of_the_table(engine: Engine) -> None:
    """A plan that reads them in place of the table has the same types."""
    names = ["id", *TYPES, "late"]
    given = _local(engine).frame(engine.spark, names, ChangedKind.PAST).schema
    wanted = engine.query(f"select {', '.join(names)} from {NAME}").schema
    assert [one.dataType.simpleString() for one in given] == [one.dataType.simpleString() for one in wanted]


def test_more_rows_than_the_limit_are_left_to_spark(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then no row is read in the driver."""
    version = TableVersion(changes=ChangesBetween(*_range(engine)))
    names = engine._warehouse.resolver._names
    monkeypatch.setattr(local_changes, "ROWS_MAX", 10)
    assert LocalChanges(names).find(NAME, version) is None


def test_a_range_is_read_once(engine: Engine) -> None:
    """Models that follow one range share its rows."""
    changes = LocalChanges(engine._warehouse.resolver._names)
    version = TableVersion(changes=ChangesBetween(*_range(engine)))
    assert changes.find(NAME, version) is changes.find(NAME, version)


def test_the_cache_forgets_the_oldest_ranges(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """So memory is bounded."""
    since, until = _range(engine)
    changes = LocalChanges(engine._warehouse.resolver._names)
    first, second = (TableVersion(changes=ChangesBetween(one, until)) for one in (since, since + 1))
    kept = changes.find(NAME, first)
    assert kept is not None
    monkeypatch.setattr(local_changes, "CACHE_BYTES", kept.rows.nbytes)
    changes.find(NAME, second)
    assert changes.find(NAME, first) is not kept
