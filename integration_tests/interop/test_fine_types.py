"""VARIANT and timestamps of 9 digits: Java and we write one table in turns; what only one can read is refused."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from integration_tests.interop.java_paimon import JavaPaimon
from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.errors import Unsupported
from tests.doses import examples

NANOS = pa.timestamp("ns")
COLUMNS = {
    "t": "TIMESTAMP(9) NOT NULL",
    "z": "TIMESTAMP(8) WITH LOCAL TIME ZONE",
    "u": "TIMESTAMP(6)",
    "m": "TIMESTAMP(3)",
    "v": "VARIANT",
    "s": {"type": "ROW", "fields": [{"id": 7, "name": "w", "type": "VARIANT"}]},
    "a": {"type": "ARRAY", "element": "VARIANT"},
}
OURS = {
    "deletion-vectors.enabled": "true",
    "changelog-producer": "lookup",
    "num-levels": "20",
    "write-only": "true",
}
YEARS = 2**63 - 10**8  # of nanoseconds: 1677 to 2262


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Of the warehouse that Java writes, too."""
    made = Engine(str(tmp_path_factory.mktemp("fine") / "warehouse"), spark=SparkSettings("local[1]"))
    made.create_database("demo")
    return made


def _create(java: JavaPaimon, engine: Engine, name: str, keys: list[str], options: dict[str, str]) -> Path:
    """By Java's own rules."""
    fields = [{"id": at, "name": one, "type": type_} for at, (one, type_) in enumerate(COLUMNS.items())]
    declared = {
        "version": 3,
        "id": 0,
        "fields": fields,
        "highestFieldId": 7,
        "partitionKeys": [],
        "timeMillis": 1,
    }
    location = Path(engine.warehouse) / "demo.db" / name
    java.create_json(location, {**declared, "primaryKeys": keys, "options": options})
    return location


def _rows(
    java: JavaPaimon, engine: Engine, name: str, keys: list[int], value: int, *, seed: int = 0
) -> pa.Table:
    schema = engine.table(f"demo.{name}").schema
    chance = random.Random(f"{seed} {value}")
    variants = [chance.choice(_texts(chance, value)) for _ in keys]
    made = [None if one is None else java.variant(one) for one in variants]
    micros = [
        chance.choice([None, key // 1000 * 3, -62_135_596_800_000_000, 253_402_300_799_999_999])
        for key in keys
    ]
    columns = {
        "t": keys,
        "z": [chance.choice([None, -key // 100 * 100]) for key in keys],
        "u": micros,
        "m": [None if one is None else one // 1000 for one in micros],
        "v": made,
        "s": [chance.choice([None, {"w": one}]) for one in made],
        "a": [chance.choice([None, [], [one, None, one]]) for one in made],
    }
    arrays = [pa.array(columns[field.name], field.type) for field in schema.arrow_schema()]
    return pa.table(arrays, schema=schema.arrow_schema())


def _texts(chance: random.Random, value: int) -> list[str | None]:
    """JSON of every kind, with numbers that have an exact form."""
    number = chance.randrange(-(10**18), 10**18)
    return [
        None, "null", "true", f"{value}", f"{number}", f"{number / 64!r}", '""', f'"é{value}"', "[]", "{}",
        f'[1,[{number}],{{"a":null}}]', f'{{"a":{value},"b":{{"c":["x",{number}]}},"é":1.25}}',
    ]  # fmt: skip


def _assert_same(java: JavaPaimon, engine: Engine, location: Path, where: str) -> pa.Table:
    """All columns of both readers, to the nanosecond and to the byte."""
    ours = engine.table(f"demo.{location.name}").scan().to_arrow().sort_by("t")
    theirs = java.read_arrow(location).sort_by("t")
    for field in ours.schema:
        one, other = ours.column(field.name), theirs.column(field.name)
        other = other.cast(field.type) if pa.types.is_timestamp(field.type) else other
        assert one.to_pylist() == other.to_pylist(), (where, field.name)
    return ours


@pytest.mark.parametrize("seed", range(examples(1, 12)))
def test_both_write_variants_and_nanoseconds_in_turns(java: JavaPaimon, engine: Engine, seed: int) -> None:
    """Keys in nanoseconds, in seven buckets: each finds the rows of the other, so both hash alike; Java compacts."""
    chance = random.Random(seed)
    some = [-1, 0, 1, 999, 1000, 10**6, -YEARS, YEARS]
    keys = list(dict.fromkeys([*some, *(chance.randrange(-YEARS, YEARS) for _ in range(examples(30, 300)))]))
    location = _create(java, engine, f"turns{seed}", ["t"], {**OURS, "bucket": "7"})
    table = engine.table(f"demo.turns{seed}")

    def rows(part: list[int], value: int) -> pa.Table:
        return _rows(java, engine, location.name, part, value, seed=seed)

    table.upsert(rows(keys, 1))
    assert _assert_same(java, engine, location, "ours").num_rows == len(keys)
    java.write(location, rows(keys[::2], 2), options={"write-only": "false"})
    _assert_same(java, engine, location, "java updates half")
    table.upsert(rows(keys[::3], 3))
    java.compact(location)
    _assert_same(java, engine, location, "java compacts")
    table.upsert(rows(keys[:5], 4))
    assert _assert_same(java, engine, location, "we again").num_rows == len(keys)
    assert table.verify() == ()


def test_years_that_nanoseconds_do_not_have_are_refused(java: JavaPaimon, engine: Engine) -> None:
    """Java writes year 9999; Arrow alone would wrap it around. The other columns are read."""
    location = _create(java, engine, "far", [], {"bucket": "-1"})
    rows = _rows(java, engine, "far", [0, 1], 1)
    far = pa.array([0, 253_402_300_799_999_999], pa.timestamp("us"))
    java.write(location, rows.set_column(0, pa.field("t", far.type), far))
    table = engine.table("demo.far")
    with pytest.raises(Unsupported, match="got 9999-12-31"):
        table.scan().to_arrow()
    assert table.scan(columns=["v"]).to_arrow().num_rows == 2


@pytest.fixture(scope="module")
def shredded(java: JavaPaimon, engine: Engine) -> list[str | None]:
    """A table whose VARIANT Java shreds, since the table asks for it; its values as JSON."""
    options = {**OURS, "bucket": "1", "variant.inferShreddingSchema": "true"}
    location = _create(java, engine, "shredded", ["t"], options)
    texts = ['{"a":1,"b":["x",2]}', '{"a":2,"b":[]}', '{"a":3,"c":null}', "null", None]
    rows = _rows(java, engine, "shredded", list(range(len(texts))), 1)
    made = pa.array([one and java.variant(one) for one in texts], rows.schema.field("v").type)
    java.write(location, rows.set_column(4, rows.schema.field("v"), made), options={"write-only": "false"})
    return texts


def test_shredded_variants_are_refused_by_python(shredded: list[str | None], engine: Engine) -> None:
    """What `typed_value` holds would be missing; other columns are read."""
    table = engine.table("demo.shredded")
    with pytest.raises(Unsupported, match="TS1162"):
        table.scan(columns=["v"]).to_arrow()
    assert table.scan(columns=["t", "s"]).to_arrow().num_rows == len(shredded)


@pytest.mark.nightly  # starts a Spark for itself
def test_shredded_variants_are_right_in_sql(shredded: list[str | None], engine: Engine) -> None:
    """Spark puts them together, value for value as Java."""
    found = engine.sql("select to_json(v), v is null from demo.shredded").rows
    assert sorted(found, key=repr) == sorted([(one, one is None) for one in shredded], key=repr)
