"""Structs in INSERT, UPDATE and MERGE: each value has its field's name and fits it, or the statement is refused.

The oracle is Python: a value is a dict by field names, and SQL text of it is written in another order of the fields.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.errors import FixData, FixRequest
from tests.doses import cases

_NAMES = ("a", "b", "Year", "x y", "it's")
Value = object


@dataclass(frozen=True)
class Shape:
    """A type: `kind` int, struct, array or map; `parts` are (name, shape)."""

    kind: str
    parts: tuple[tuple[str, Shape], ...] = ()

    def ddl(self) -> str:
        """As Spark SQL writes it."""
        inside = [(f"`{name}`:" if self.kind == "struct" else "") + shape.ddl() for name, shape in self.parts]
        return self.kind if self.kind == "int" else f"{self.kind}<{','.join(inside)}>"

    def shuffled(self, rng: random.Random) -> Shape:
        """The fields of each struct in any order; every second name in another case."""
        parts = [(name, shape.shuffled(rng)) for name, shape in self.parts]
        if self.kind == "struct":
            rng.shuffle(parts)
            parts = [(rng.choice((name, name.upper())), shape) for name, shape in parts]
        return Shape(self.kind, tuple(parts))

    def keeps_order(self, other: Shape) -> bool:
        """Whether all fields stand at the same places."""
        return all(
            mine[0].lower() == theirs[0].lower() and mine[1].keeps_order(theirs[1])
            for mine, theirs in zip(self.parts, other.parts, strict=True)
        )


def _shape(rng: random.Random, depth: int = 3) -> Shape:
    kind = rng.choice(("struct", "struct", "array", "map", "int")) if depth < 3 else "struct"
    if depth == 0 or kind == "int":
        return Shape("int")
    if kind == "struct":
        names = rng.sample(_NAMES, rng.randint(1, 4))
        return Shape(kind, tuple((name, _shape(rng, depth - 1)) for name in names))
    if kind == "array":
        return Shape(kind, (("element", _shape(rng, depth - 1)),))
    key = Shape("struct", (("k", Shape("int")), ("l", Shape("int")))) if rng.random() < 0.5 else Shape("int")
    return Shape(kind, (("key", key), ("value", _shape(rng, depth - 1))))


def _value(rng: random.Random, shape: Shape, *, can_be_null: bool = True) -> Value:
    if can_be_null and rng.random() < 0.15:
        return None
    if shape.kind == "int":
        return rng.randint(0, 99)
    if shape.kind == "struct":
        return {name: _value(rng, part, can_be_null=can_be_null) for name, part in shape.parts}
    if shape.kind == "array":
        return [_value(rng, shape.parts[0][1]) for _ in range(rng.randint(0, 2))]
    (_, key), (_, value) = shape.parts
    return [(_value(rng, key, can_be_null=False), _value(rng, value))] * rng.randint(0, 1)


def _text(value: Value, shape: Shape) -> str:
    """The value as SQL of the type `shape`, whose fields are in an order of their own."""
    if value is None or value == []:
        return f"cast({'null' if value is None else f'{shape.kind}()'} as {shape.ddl()})"
    if isinstance(value, dict):
        by_name = {name.lower(): part for name, part in value.items()}
        fields = ", ".join(f'"{name}", {_text(by_name[name.lower()], part)}' for name, part in shape.parts)
        return f"named_struct({fields})"
    if shape.kind == "array":
        assert isinstance(value, list)
        return f"array({', '.join(_text(one, shape.parts[0][1]) for one in value)})"
    if shape.kind == "map":
        assert isinstance(value, list)
        return f"map({_text(value[0][0], shape.parts[0][1])}, {_text(value[0][1], shape.parts[1][1])})"
    return str(value)


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    """A schema without tables."""
    del spark
    with Engine(str(tmp_path / "warehouse"), spark=SparkSettings("local[2]")) as engine:
        engine.create_database("demo")
        yield engine


def _stored(engine: Engine, table: str) -> list[Value]:
    return engine.table(table).scan().to_arrow().sort_by("id").column("s").to_pylist()


@pytest.mark.parametrize("seed", cases(range(8), 1))
def test_insert_by_name_update_and_merge_match_fields_at_every_depth(engine: Engine, seed: int) -> None:
    """Random types and values: what is read back has each value below its name, in whatever order SQL gave it."""
    rng = random.Random(seed)
    shape = _shape(rng)
    given = shape.shuffled(rng)
    first, second, third, fourth = (_value(rng, shape) for _ in range(4))
    engine.sql(f"create table demo.t (id int not null, s {shape.ddl()}, primary key (id))")
    engine.sql(f"insert into demo.t by name select {_text(first, given)} as s, 1 as id")
    assert _stored(engine, "demo.t") == [first]
    engine.sql(f"update demo.t set s = {_text(second, given)}")
    assert _stored(engine, "demo.t") == [second]
    rows = f"select 1 as id, {_text(third, given)} as s union all select 2, {_text(fourth, given)}"
    engine.sql(
        f"merge into demo.t as t using ({rows}) as q on t.id = q.id when matched then update set * "
        "when not matched then insert (s, id) values (q.s, q.id)"
    )
    assert _stored(engine, "demo.t") == [third, fourth]


@pytest.mark.parametrize("seed", cases(range(8, 14), 2))
def test_insert_by_position_is_refused_where_fields_have_other_places(engine: Engine, seed: int) -> None:
    """The type decides, not the values: NULL in the wrong order is refused, too. The right order is written."""
    rng = random.Random(seed)
    shape = _shape(rng)
    value = _value(rng, shape)
    engine.sql(f"create table demo.t (id int, s {shape.ddl()})")
    for columns in ("", " (id, s)"):
        given = shape.shuffled(rng)
        statement = f"insert into demo.t{columns} select 1, {_text(value, given)}"
        before = _stored(engine, "demo.t")
        if shape.keeps_order(given):
            engine.sql(statement)
            assert _stored(engine, "demo.t") == [*before, value]
        else:
            with pytest.raises(FixRequest, match="BY NAME") as caught:
                engine.sql(statement)
            assert caught.value.code == "TS1551"
            assert _stored(engine, "demo.t") == before


def test_structs_without_names_of_the_column_are_inserted_by_position(engine: Engine) -> None:
    """As Spark does: struct(1, 2) has the names col1 and col2, and nothing can be swapped."""
    engine.sql("create table demo.t (id int, s struct<a:int,b:int>)")
    engine.sql("insert into demo.t values (1, struct(1, 2))")
    engine.sql("insert into demo.t select 2, named_struct('a', 3, 'z', 4)")
    assert _stored(engine, "demo.t") == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


@pytest.mark.parametrize(
    "statement",
    [
        "insert into demo.t by name select 2 as id, named_struct('x', 1, 'y', 2) as s",
        "insert into demo.t by name select 2 as id, named_struct('b', 1) as s",
        "insert into demo.t values (2, named_struct('a', 1))",
        "insert into demo.t values (2, named_struct('b', 1, 'z', 2))",
        "update demo.t set s = named_struct('a', 1, 'b', 2, 'c', 3)",
        "update demo.t set s = struct(1, 2)",
        "merge into demo.t as t using demo.other as q on t.id = q.id when matched then update set *",
    ],
)
def test_struct_with_other_fields_is_refused(engine: Engine, statement: str) -> None:
    """One that the column lacks, or that is missing, is no guess: TS1551 names both sides, and the rows stay."""
    engine.sql("create table demo.t (id int not null, s struct<a:int,b:int>, primary key (id))")
    engine.sql("insert into demo.t values (1, named_struct('a', 1, 'b', 2))")
    engine.sql("create table demo.other as select 1 as id, named_struct('b', 1, 'c', 2) as s")
    with pytest.raises(
        FixRequest, match=r"(?s)fields of column s\n.*the column has a, b, the value has"
    ) as caught:
        engine.sql(statement)
    assert caught.value.code == "TS1551"
    assert "BY NAME" not in caught.value.fix
    assert _stored(engine, "demo.t") == [{"a": 1, "b": 2}]


def test_struct_expression_is_evaluated_once(engine: Engine) -> None:
    """An expression that differs from call to call gives both fields of one call."""
    engine.sql("create table demo.t (id int not null, s struct<a:string,b:string>, primary key (id))")
    engine.sql("insert into demo.t values (1, null)")
    engine.sql(
        "update demo.t set s = transform(array(uuid()), u -> named_struct('b', u, 'a', concat(u, '!')))[0]"
    )
    (stored,) = _stored(engine, "demo.t")
    assert isinstance(stored, dict)
    assert stored["a"] == stored["b"] + "!"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("named_struct('a', double('nan'), 'b', array())", "s.a: a value does not fit int: NaN"),
        ("named_struct('a', 5000000000, 'b', array())", "s.a: a value does not fit int: 5000000000"),
        ("struct(1, array(map('k', 1000)))", "s.b.element.value: a value does not fit decimal(4,2): 1000"),
        ("struct(1, array(map(date'2026-01-01', 1)))", None),
    ],
)
def test_value_inside_a_column_that_does_not_fit_is_refused(
    engine: Engine, value: str, told: str | None
) -> None:
    """As for a column itself (TS1526): nothing wraps around, and nothing becomes NULL."""
    engine.sql(
        "create table demo.t (id int not null, s struct<a:int,b:array<map<string,decimal(4,2)>>>, primary key (id))"
    )
    insert = f"insert into demo.t values (1, {value})"
    if told is None:
        engine.sql(insert)
        assert _stored(engine, "demo.t") == [{"a": 1, "b": [[("2026-01-01", Decimal(1))]]}]
        return
    source = f"select 1 as id, {_named(value)} as s"
    merge = f"merge into demo.t as t using ({source}) as q on t.id = q.id when not matched then insert *"
    for statement in (insert, merge):
        with pytest.raises(FixData, match="TS1526") as caught:
            engine.sql(statement)
        assert told in caught.value.why
    assert _stored(engine, "demo.t") == []


def _named(value: str) -> str:
    return value.replace("struct(1, ", "named_struct('a', 1, 'b', ") if value.startswith("struct") else value


def test_subquery_gives_its_fields_by_name(engine: Engine) -> None:
    """Spark takes no subquery in a lambda: structs are matched without one, lists of them are refused (TS1551)."""
    engine.sql("create table demo.t (id int not null, s struct<a:bigint,b:struct<c:int>>, primary key (id))")
    engine.sql("create table demo.u (id int not null, s array<struct<a:int,b:int>>, primary key (id))")
    for table in ("t", "u"):
        engine.sql(f"insert into demo.{table} values (1, null)")
    engine.sql("update demo.t set s = (select named_struct('b', named_struct('c', 3L), 'a', 4))")
    assert _stored(engine, "demo.t") == [{"a": 4, "b": {"c": 3}}]
    engine.sql("update demo.u set s = (select array(named_struct('a', 1, 'b', 2)))")
    with pytest.raises(FixRequest, match="TS1551"):
        engine.sql("update demo.u set s = (select array(named_struct('b', 1, 'a', 2)))")
    assert _stored(engine, "demo.u") == [[{"a": 1, "b": 2}]]
