"""Filters as pyarrow expressions: pyarrow over all rows is the oracle for what is read and which files are left out."""

from __future__ import annotations

import datetime as dt
import pickle
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablestore_engine.api import Engine, FixRequest, Table
from tablestore_engine.store.files.column_facts import ColumnFacts
from tablestore_engine.store.read import expression_condition
from tablestore_engine.store.read.expression_condition import ExpressionCondition
from tests.doses import examples
from tests.unit.api.filter_world import SCHEMA, VALUES, World, names, small_groups

WORLDS = examples(1, 150)
FILTERS = examples(40, 60)
_COMPARED: list[Callable[[Any, Any], Any]] = [
    pc.equal, pc.not_equal, pc.less, pc.less_equal, pc.greater, pc.greater_equal,
]  # fmt: skip
_NUMBERS = ("tiny", "f", "d", "price")  # that every value of is a DOUBLE


def _values(chance: random.Random, column: str, count: int) -> pa.Array:
    known = [*VALUES[column], None] if column in VALUES else [0, 3, 17, None]
    return pa.array(chance.choices(known, k=count), SCHEMA.field(column).type)


def _leaf(chance: random.Random) -> Any:
    column = chance.choice(SCHEMA.names)
    field, kind = pc.field(column), SCHEMA.field(column).type
    value = _values(chance, column, 1)[0]
    shape = chance.randrange(12)
    if shape == 0:
        return field.is_null(nan_is_null=chance.random() < 0.5)
    if shape == 1:
        return field.is_valid()
    if shape == 2 and kind != pa.bool_():
        options = pc.SetLookupOptions(_values(chance, column, 3), skip_nulls=chance.random() < 0.5)
        return pc.Expression._call("is_in", [field], options)
    if shape == 3 and column in _NUMBERS:
        return pc.field(column).cast(pa.float64()) > chance.choice([0.5, -1.0, float("nan")])
    if shape == 4 and column in ("f", "d"):
        return pc.is_nan(field)
    if shape == 5:
        return chance.choice(_COMPARED)(pc.coalesce(field, value), value)
    if shape == 6:
        return pc.if_else(pc.field("flag"), chance.choice(_COMPARED)(field, value), pc.scalar(True))
    if shape == 7 and kind == pa.string():
        return chance.choice(
            [pc.starts_with(field, "a"), pc.match_like(field, "%c"), pc.utf8_upper(field) == "AB"]
        )
    if shape == 8:
        return chance.choice(
            [pc.field("tiny") < pc.field("big"), pc.field("f") <= pc.field("d"), pc.field("flag")]
        )
    if shape == 9 and column in ("tiny", "id"):
        return field.cast(pa.int64()) * 2 + 1 > chance.choice([-3, 0, 9])
    if shape == 10:
        return chance.choice(_COMPARED)(pc.scalar(value), field)
    return chance.choice(_COMPARED)(field, pc.scalar(value))


def _expression(chance: random.Random, depth: int = 0) -> Any:
    shape = chance.randrange(6) if depth < 3 else 5
    if shape == 0:
        return _expression(chance, depth + 1) & _expression(chance, depth + 1)
    if shape == 1:
        return _expression(chance, depth + 1) | _expression(chance, depth + 1)
    if shape == 2:
        return ~_expression(chance, depth + 1)
    if shape == 3:
        return pc.xor(_expression(chance, depth + 1), _leaf(chance))
    return _leaf(chance)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_filter_expression_random_tables_gives_the_rows_of_pyarrow(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same expression over the same rows, in memory and by a scan: same rows, whole, in part and limited."""
    small_groups(monkeypatch)
    world = World(tmp_path, seed)
    rows, chance = world.expected(), random.Random(seed)
    for _ in range(FILTERS):
        expression = _expression(chance)
        wanted = names(rows.filter(expression))
        assert names(world.table.scan(filter=expression).to_arrow()) == wanted, str(expression)
        some = world.table.scan(columns=["id", "part"], filter=expression, limit=3).to_arrow()
        assert some.num_rows == min(3, len(wanted)), str(expression)
        assert set(names(some)) <= set(wanted), str(expression)


@pytest.mark.parametrize("seed", range(WORLDS // 2))
def test_overwrite_by_expression_random_tables_replaces_the_rows_of_pyarrow(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After overwrite(rows, filter=) there are the new rows, and the old ones that the expression is not TRUE of."""
    small_groups(monkeypatch)
    world = World(tmp_path, seed)
    chance, rows = random.Random(-seed - 1), world.expected()
    expression = _expression(chance)
    gone = set(names(rows.filter(expression)))
    new = [dict.fromkeys(SCHEMA.names) | {"id": 1_000_000, "part": "new"}]
    world.table.overwrite(pa.Table.from_pylist(new, SCHEMA), filter=expression)
    left = sorted({*names(rows), (1_000_000, "new")} - gone)
    assert names(world.table.scan().to_arrow()) == left, str(expression)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Three files, each with one value of each column; the last one has NULL."""
    table = Engine(str(tmp_path)).create_table("demo.t", SCHEMA, options={"bucket": -1})
    empty = dict.fromkeys(SCHEMA.names)
    for number in range(2):
        row = {
            "id": number,
            "part": f"p{number}",
            "big": number,
            "price": Decimal(number),
            "name": f"n{number}",
        }
        row |= {"day": dt.date(2026, 1, number + 1), "d": 1.0, "flag": True}
        row |= {"sent": dt.datetime(2026, 1, number + 1, tzinfo=dt.UTC)}
        table.append(pa.Table.from_pylist([empty | row], SCHEMA))
    table.append(pa.Table.from_pylist([empty | {"id": 2, "part": "p2"}], SCHEMA))
    return table


@pytest.mark.parametrize(
    "expression",
    [
        pc.field("id") < 1,
        pc.field("price") < Decimal("0.5"),
        (pc.field("name") == "n0") & pc.field("d").is_valid(),
        pc.field("day") <= dt.date(2026, 1, 1),
        pc.field("sent") < dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        pc.field("big").isin([0, 7]),
        ~(pc.field("big") > 0),
    ],
    ids=str,
)
def test_filter_expression_leaves_out_files_that_cannot_match(table: Table, expression: object) -> None:
    """Statistics and NULL counts decide before files are opened: the others may be gone."""
    for file in table.scan().plan().files[1:]:
        Path(file.path).unlink()
    assert table.scan(filter=expression).to_arrow()["id"].to_pylist() == [0]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (pc.field("nothing") == 1, "nothing"),
        (pc.field(0) == 1, "position"),
        ((pc.field("id") == 1) & (pc.field(2) == 1), "position"),
        (pc.field("id"), "not boolean"),
        (pc.field("id") + 1, "not boolean"),
        (pc.field("name") == 5, "string"),
    ],
    ids=str,
)
def test_filter_expression_that_has_no_meaning_is_refused(table: Table, expression: object, why: str) -> None:
    """TS1566 when the scan is made; a column by its position would be another one once some are left out."""
    with pytest.raises(FixRequest, match=rf"(?s)TS1566.*{why}"):
        table.scan(filter=expression)


def test_filter_expression_bounds_of_floats_say_nothing_of_nan(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other writers leave NaN out of the bounds of a file, and NOT makes pyarrow's comparison with it TRUE."""
    known = ColumnFacts(rows=2, nulls=0, low=1.0, high=1.0, exact=True)
    monkeypatch.setattr(expression_condition, "fact_finder", lambda _: lambda _: lambda _: known)
    bound = ExpressionCondition(~(pc.field("d") <= 1.0)).bind(table.schema)
    assert len(bound.prune(table.scan().plan().files)) == 3


def test_filter_expression_that_fails_for_a_value_is_refused(table: Table) -> None:
    """An error of a function is TS1566 while rows are read."""
    scan = table.scan(filter=pc.divide(pc.scalar(1), pc.field("id")) > 0)
    with pytest.raises(FixRequest, match=r"(?s)TS1566.*divide by zero"):
        scan.to_arrow()


def test_filter_expression_reads_only_its_columns(table: Table) -> None:
    """Columns of the filter are found by trying; none are needed for a constant, and one is read for its rows."""
    schema = table.schema
    bound = ExpressionCondition((pc.field("d") > 0) | pc.field("flag")).bind(schema)
    assert bound.columns == ("d", "flag")
    assert ExpressionCondition(pc.scalar(True)).bind(schema).columns == ("id",)
    assert table.scan(columns=["part"], filter=pc.scalar(True)).to_arrow().num_rows == 3
    assert table.scan(columns=["part"], filter=pc.scalar(False)).to_arrow().num_rows == 0


def test_expression_condition_is_picklable(table: Table) -> None:
    """It travels to Spark tasks."""
    sent = pickle.loads(pickle.dumps(ExpressionCondition(pc.field("id") == 1)))
    assert sent.bind(table.schema).columns == ("id",)
