"""Every aggregate function against one that takes value after value in plain Python, with NULL and retractions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixData
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.lsm.aggregate_registry import FUNCTIONS
from tablestore_engine.lsm.aggregation import make_aggregation
from tablestore_engine.lsm.key_order import order_frame
from tablestore_engine.lsm.key_versions import sort_versions
from tablestore_engine.lsm.merge_records import merged_rows
from tablestore_engine.lsm.sequence_field import SequenceOrder
from tablestore_engine.options import AGGREGATE_FUNCTIONS
from tests.doses import examples

Add = Callable[[Any, Any], Any]
INT, STRING = parse_type("INT"), parse_type("STRING")
ARRAY = DataType("ARRAY", element=STRING)
MAP = DataType("MAP", key=STRING.with_nullable(False), value=INT)


def _skips(add: Add) -> Add:
    """NULL on either side gives the other one."""
    return lambda old, new: new if old is None else old if new is None else add(old, new)


def _listagg(old: Any, new: Any) -> Any:
    if new is None or not new.strip():
        return old
    return new if old is None or not old.strip() else f"{old},{new}"


def _distinct_listagg(old: Any, new: Any) -> Any:
    if new is None or not new.strip():
        return old
    if old is None or not old.strip():
        return new
    for part in new.split(","):
        if part.strip() and part not in old.split(","):
            old = f"{old},{part}"
    return old


def _distinct(old: Any, new: Any) -> Any:
    if old is None and new is None:
        return None
    return list(dict.fromkeys([*(old or []), *(new or [])]))


def _without(old: Any, gone: Any) -> Any:
    if old is None or gone is None:
        return old
    left = list(gone)
    kept = []
    for one in old:
        if one in left:
            left.remove(one)
        else:
            kept.append(one)
    return kept


def _FIRST(_old: Any, _new: Any) -> Any:
    raise AssertionError


def _negative(old: Any, gone: Any) -> Any:
    if gone is None:
        return old
    return -gone if old is None else old - gone


@dataclass(frozen=True)
class Case:
    """`add` takes the value so far and the next one; `away` the same for a retraction, None where there is none."""

    function: str
    type: DataType
    values: st.SearchStrategy[Any]
    add: Add
    away: Add | None = None
    options: Mapping[str, str] | None = None


_TEXTS = st.sampled_from(["a", "b", "a,b", "b,b", " ", "", "ä"])
_ARRAYS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3)
_MAPS = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.one_of(st.none(), st.integers(0, 5)), max_size=3)
_INTS = st.integers(-9, 9)
_FLOATS = st.sampled_from([0.1, 1e16, -1.0, 3.3, -0.0])
_WIDE = st.integers(-(10**24), 10**24).map(lambda n: Decimal(n).scaleb(-2))
CASES = {
    "sum": Case("sum", INT, _INTS, _skips(lambda a, b: a + b), _negative),
    "sum of bigint": Case(
        "sum", parse_type("BIGINT"), st.integers(-(2**58), 2**58), _skips(lambda a, b: a + b), _negative
    ),
    "sum of double": Case("sum", parse_type("DOUBLE"), _FLOATS, _skips(lambda a, b: a + b), _negative),
    "sum of decimal": Case("sum", parse_type("DECIMAL(30, 2)"), _WIDE, _skips(lambda a, b: a + b), _negative),
    "product": Case("product", parse_type("BIGINT"), st.integers(-3, 3), _skips(lambda a, b: a * b)),
    "product of decimal": Case(
        "product", parse_type("DECIMAL(30, 2)"), st.integers(-300, 300).map(lambda n: Decimal(n).scaleb(-2)),
        _skips(lambda a, b: (a * b).quantize(Decimal("0.01"), rounding="ROUND_HALF_UP") + 0),  # Arrow has no -0
    ),
    "max": Case("max", STRING, _TEXTS, _skips(max)),
    "min": Case("min", INT, _INTS, _skips(min)),
    "bool_and": Case("bool_and", parse_type("BOOLEAN"), st.booleans(), _skips(lambda a, b: a and b)),
    "bool_or": Case("bool_or", parse_type("BOOLEAN"), st.booleans(), _skips(lambda a, b: a or b)),
    "last_value": Case("last_value", ARRAY, _ARRAYS, lambda _a, b: b, lambda _a, _b: None),
    "last_non_null_value": Case(
        "last_non_null_value", STRING, _TEXTS, lambda a, b: a if b is None else b, lambda a, b: a if b is None else None
    ),
    "first_value": Case("first_value", STRING, _TEXTS, _FIRST),
    "first_non_null_value": Case("first_non_null_value", STRING, _TEXTS, _skips(lambda a, _b: a)),
    "listagg": Case("listagg", STRING, _TEXTS, _listagg),
    "distinct listagg": Case("listagg", STRING, _TEXTS, _distinct_listagg, None, {"distinct": "true"}),
    "collect": Case("collect", ARRAY, _ARRAYS, _skips(lambda a, b: a + b), _without),
    "distinct collect": Case("collect", ARRAY, _ARRAYS, _distinct, _without, {"distinct": "true"}),
    "merge_map": Case(
        "merge_map", MAP, _MAPS, _skips(lambda a, b: {**a, **b}),
        lambda a, b: a if a is None or b is None else {k: v for k, v in a.items() if k not in b},
    ),
}  # fmt: skip


def _schema(case: Case, **more: str) -> TableSchema:
    options = {"fields.v.aggregate-function": case.function, **more}
    options |= {f"fields.v.{name}": value for name, value in (case.options or {}).items()}
    fields = [DataField(0, "id", INT.with_nullable(False)), DataField(1, "v", case.type)]
    return new_schema(fields, primary_keys=("id",), options={"merge-engine": "aggregation", **options})


def _merged(case: Case, versions: Sequence[tuple[int, bool, Any]], **options: str) -> dict[int, Any]:
    schema = _schema(case, **options)
    rows = pa.Table.from_pylist(
        [{"id": key, "v": value} for key, _, value in versions], schema.arrow_schema()
    )
    gone = np.array([not adds for _, adds, _ in versions], dtype=np.bool_)
    arrival = SequenceOrder.of(order_frame([pa.array(range(len(versions)), pa.int64())]), descending=False)
    found = make_aggregation(schema).merge(
        sort_versions(order_frame([rows.column("id")]), gone, arrival, rows)
    )
    made = merged_rows(rows, found).to_pylist()
    return {
        row["id"]: dict(row["v"]) if case.type is MAP and row["v"] is not None else row["v"] for row in made
    }


def _expected(
    case: Case, versions: Sequence[tuple[int, bool, Any]], *, ignores: bool = False
) -> dict[int, Any]:
    found: dict[int, list[tuple[bool, Any]]] = {}
    for key, adds, value in versions:
        found.setdefault(key, []).append((adds, value))
    made = {}
    for key, mine in found.items():
        made[key] = mine[0][1]
        if len(mine) > 1:
            value = None
            for number, (adds, one) in enumerate(mine):
                if case.add is _FIRST:
                    value = value if number else one
                elif adds:
                    value = case.add(value, one)
                elif not ignores:
                    assert case.away is not None
                    value = case.away(value, one)
            made[key] = value
    return made


@settings(deadline=None, max_examples=examples(30, 60))
@given(st.data(), st.sampled_from(sorted(CASES)))
def test_functions_are_those_of_plain_python(data: st.DataObject, name: str) -> None:
    """Values of repeated keys in any order, NULL among them, retractions where the function has any."""
    case = CASES[name]
    adds = st.booleans() if case.away is not None else st.just(True)
    value = st.one_of(st.none(), case.values)
    versions = data.draw(st.lists(st.tuples(st.integers(0, 4), adds, value), max_size=16))
    assert repr(_merged(case, versions)) == repr(dict(sorted(_expected(case, versions).items())))


@settings(deadline=None, max_examples=examples(20, 30))
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.one_of(st.none(), _INTS)), max_size=14))
def test_retractions_are_ignored_or_refused(versions: list[tuple[int, bool, Any]]) -> None:
    """max cannot take a value back: TS1660, unless the column ignores retractions, which then change nothing."""
    case = Case("max", INT, _INTS, _skips(max))
    ignoring = {"fields.v.ignore-retract": "true"}
    expected = _expected(case, versions, ignores=True)
    assert _merged(case, versions, **ignoring) == dict(sorted(expected.items()))
    keys = [key for key, _, _ in versions]
    if any(not adds and keys.count(key) > 1 for key, adds, _ in versions):
        with pytest.raises(FixData, match="TS1660"):
            _merged(case, versions)


@settings(deadline=None, max_examples=examples(20, 30))
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(-20, 20)), max_size=12))
def test_product_takes_back_by_division(versions: list[tuple[int, bool, int]]) -> None:
    """Whole numbers divide towards zero; nothing is divided before the first value, and zero is an error."""

    def away(old: Any, gone: int) -> Any:
        return old if old is None else int(old / gone)

    case = Case("product", parse_type("BIGINT"), _INTS, _skips(lambda a, b: a * b), away)
    try:
        expected = dict(sorted(_expected(case, versions).items()))
    except ZeroDivisionError:
        with pytest.raises(FixData, match="TS1663"):
            _merged(case, versions)
        return
    assert _merged(case, versions) == expected


@pytest.mark.parametrize(
    ("type_text", "values"),
    [
        ("TINYINT", [100, 28]),
        ("INT", [2**31 - 1, 1]),
        ("BIGINT", [2**63 - 1, 1]),
        ("BIGINT", [-(2**63), -1]),
        ("DECIMAL(4, 2)", [Decimal("99.99"), Decimal("0.01")]),
        ("DECIMAL(38, 0)", [Decimal(10**38 - 1), Decimal(1)]),
    ],
)
def test_overflow_is_an_error_at_the_bound(type_text: str, values: list[Any]) -> None:
    """One more than the largest value fails (TS1659), the largest itself is stored."""
    case = Case("sum", parse_type(type_text), st.none(), _skips(lambda a, b: a + b))
    with pytest.raises(FixData, match="TS1659"):
        _merged(case, [(1, True, value) for value in values])
    assert _merged(case, [(1, True, values[0]), (1, True, values[0] - values[0])]) == {1: values[0]}


def test_long_groups_are_summed_in_order() -> None:
    """Hundreds of floats of one key, beside short ones: the digits are those of adding one after the other."""
    chance = np.random.default_rng(5)
    values = [float(one) for one in chance.normal(0, 1e6, 400)]
    versions = [(number % 3 and 1, True, value) for number, value in enumerate(values)]
    case = Case("sum", parse_type("DOUBLE"), st.none(), _skips(lambda a, b: a + b))
    assert _merged(case, [*versions, (7, True, 0.5), (7, True, 0.1)]) == _expected(
        case, [*versions, (7, True, 0.5), (7, True, 0.1)]
    )


def test_every_function_has_a_case() -> None:
    """What is registered is compared here."""
    one_by_one = {"nested_update", "merge_map_with_keytime", "rbm32"}  # tests/unit/lsm/test_one_by_one.py
    compared = {case.function for case in CASES.values()} | one_by_one
    assert compared == set(FUNCTIONS) == set(AGGREGATE_FUNCTIONS)
