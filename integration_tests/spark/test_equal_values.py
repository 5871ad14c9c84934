"""Groups of values that are equal in SQL and not the same (-0.0, collations): no affected key is missing, or all rows
are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

from integration_tests.spark.traced_world import KEYED, P, collected_keys, rows, trace, traced_world
from tablestore_engine.api import ChangesBetween, Engine, TableVersion
from tests.doses import cases

T = "demo.odd"
_SCHEMA = pa.schema([("id", pa.int64()), ("d", pa.float64()), ("s", pa.string()), ("f", pa.float32())])
_C = f"(select id, s collate utf8_lcase as c, d, f from {T})"
_CAST = "cast(c as string collate utf8_binary)"

PROVEN = {
    "a number made negative": f"select cast(x as string) as k, n from (select -d as x, sum(f) n from {T} group by -d)",
    "a grouping column under another name": (
        f"select cast(x as string) as k, sum(f) n from (select x, f from (select -d as x, id, max(f) f from {T} "
        "group by -d, id)) group by cast(x as string)"
    ),
    "distinct numbers": f"select cast(x as string) as k from (select distinct -d as x from {T})",
    "partition by a number": f"select cast(d as string) as k, id, sum(f) over (partition by d) n from {T}",
    "partition by a result": f"select cast(-d as string) as k, id, sum(f) over (partition by -d) n from {T}",
    "numbers of rows": f"select cast(d as string) as k, f, s from {T}",
    "all columns of rows": f"select concat(cast(d as string), cast(f as string)) as k, * from {T}",
    "float": f"select cast(f as string) as k, n from (select f, count(*) n from {T} group by f)",
    "collation beside an exact group": (
        f"select upper(s) as k, sum(f) n from {T} group by s collate utf8_lcase, upper(s)"
    ),
    "partition by a collation": f"select {_CAST} as k, id, sum(f) over (partition by c) n from {_C}",
    "join by a collation": (
        f"select {_CAST.replace('c as', 'a.c as')} as k, b.id, b.f from {_C} a join {_C} b on a.c = b.c"
    ),
}
COMPARED = {
    "numbers as key": f"select -d as k, sum(f) n from {T} group by -d",
    "collation": f"select {_CAST} as k, sum(f) n from {_C} group by c",
    "collation above": f"select {_CAST} as k, n from (select c, sum(f) n from {_C} group by c)",
    "distinct by a collation": f"select {_CAST} as k from (select distinct c from {_C})",
    "a collation as key": f"select c as k, max(f) n from {_C} group by c",
    "a row's collation as key": f"select c as k, f from {_C}",
    "a collation in a struct": (
        f"select lower(x.v collate utf8_binary) as k, n from (select x, sum(f) n from "
        f"(select named_struct('v', c) x, f from {_C}) group by x)"
    ),
    "a collation in an array": f"select {_CAST.replace('c as', 'x[0] as')} as k, n from (select x, sum(f) n from "
    f"(select array(c) x, f from {_C}) group by x)",
    "union": f"select {_CAST} as k from (select c from {_C} union select c from {_C} where id > 1)",
    "a function of a number that is grouped": f"select cast(d as string) as k, count(*) n from {T} group by d",
    "structs of numbers": (
        f"select cast(x.v as string) as k, n from (select x, count(*) n from (select struct(d as v) x from {T}) "
        "group by x)"
    ),
    "ties in a partition of two keys": (
        f"select cast(d as string) as k, id, row_number() over (partition by d order by f) n from {T}"
    ),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Changes touch only one of the values of each group."""
    with traced_world(tmp_path_factory.mktemp("equal")) as engine:
        first = [(1, 0.0, "a", 0.0), (2, -0.0, "A", 1.0), (3, float("nan"), "b", 1.0), (4, 1.5, "c", 2.0)]
        engine.write(T, rows(_SCHEMA, *first), KEYED)
        engine.write(T, rows(_SCHEMA, (1, 0.0, "A", 5.0), (5, 0.0, "B", 7.0), (6, 1.5, "C", -0.0)), KEYED)
        engine.write(T, rows(_SCHEMA, (7, -0.0, "d", 1.0)), KEYED)
        yield engine


def _affected(engine: Engine, sql: str) -> tuple[str, set[str]]:
    """The clause, the keys."""
    with engine.changed_keys.trace(sql, versions={T: TableVersion(snapshot=3)}) as traced:
        clause = traced.general_clause(("k",))
        if clause is not None:
            return clause, set()
        changes = {T: TableVersion(changes=ChangesBetween(1, 3))}
        found = traced.affected_keys(("k",), changes, {})
        return found.clause, {str(key) for (key,) in collected_keys(engine, traced, found)}


def _differing(engine: Engine, sql: str) -> set[str]:
    before, after = (
        Counter(
            (str(row["k"]), str(tuple(row)))
            for row in engine.query(sql, versions={T: TableVersion(snapshot=number)}).collect()
        )
        for number in (1, 3)
    )
    return {key for key, _ in (before - after) + (after - before)}


@pytest.mark.parametrize("name", cases(PROVEN, 5))
def test_no_key_of_a_group_of_equal_values_is_missing(engine: Engine, name: str) -> None:
    """The key is what the group shows, not what the changed row has."""
    clause, keys = _affected(engine, PROVEN[name])
    assert clause == ""
    missing = _differing(engine, PROVEN[name]) - keys
    assert not missing, (missing, keys)


@pytest.mark.parametrize("name", cases(COMPARED, 4))
def test_group_that_can_show_another_value_has_no_proof(engine: Engine, name: str) -> None:
    """Which of the equal values a group shows does not follow from the changed rows: all rows are compared."""
    clause, keys = _affected(engine, COMPARED[name])
    assert "equal values can differ" in clause or "order of rows" in clause
    assert not keys


def test_window_by_a_column_that_is_selected_under_its_own_name(engine: Engine) -> None:
    """Spark makes an invalid plan of a column beside an alias of it with the same name, over a union."""
    newest = "row_number() over (partition by q.name order by q.boss nulls first, q.id)"
    for key, item in (
        ("name", "coalesce(b.name, '~') as name"),
        ("name,id", "coalesce(b.name, '~') as name, b.id"),
    ):
        sql = f"select {item}, b.n from (select q.name as name, q.id as id, {newest} as n from {P} q) b"
        found, keys = trace(engine, sql, tuple(key.split(",")), (P,))
        assert found.clause == ""
        assert "renamed" in {row[0] for row in keys}
        assert len(keys) == found.count
