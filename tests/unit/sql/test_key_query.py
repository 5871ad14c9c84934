"""Queries by key are recognized by their text alone; every other text is Spark's."""

from __future__ import annotations

import pytest

from tablestore_engine.sql.key_query import KeyQuery, read_key_query


def test_columns_and_values_are_read() -> None:
    """Letter case, quotes, comments, IN and the end of the statement."""
    assert read_key_query("select * from d.t where id = 5") == KeyQuery("d", "t", None, {"id": (5,)})
    text = "/* dbt */ SELECT a, `b c`\nFROM `d`.t -- all\nWhere k = 'x y' AND n In (1, -2) and m = '' ;"
    assert read_key_query(text) == KeyQuery("d", "t", ("a", "b c"), {"k": ("x y",), "n": (1, -2), "m": ("",)})


# of `select * from d.t where …`, and whole texts
CONDITIONS = [
    "d.t.id = 5", "id = 5 or id = 6", "not id = 5", "id > 5", "id <=> 5",
    "id = 5 limit 1", "id = 5 order by id", "id = 5 group by id", "id = 5.0", "id = 5L",
    "id = null", "id = 1234567890123456789", "id = - -5", "id = 'a' 'b'", "id = 'it''s'",
    "id = 'a\\n'", "id = \"a\"", "id = r'a'", "id = '${x}'", "id = 5 and id = 6",
    "id = 5 and id in (5)", "5 = id", "id in ()", "id in (select 5)", "id = :x",
    "id = ?", "id = current_date", "id = 5 union all select 1", "id = ٥", "(id = 5)",
    "id = 5; select 1",
]  # fmt: skip
TEXTS = [
    "select * from d.t", "select * from t where id = 5",
    "select * from d.t x where id = 5", "select 1",
    "select * from d.t as x where x.id = 5", "select distinct id from d.t where id = 5",
    "select id as x from d.t where id = 5", "select id + 1 from d.t where id = 5",
    "select *, id from d.t where id = 5", "select current_date from d.t where id = 5",
    "select * from d.t version as of 1 where id = 5", "select * from d.t, d.u where id = 5",
    "select * from d.t join d.u where id = 5", "select /*+ x */ * from d.t where id = 5",
    "select * from session.t where id = 5", "select * from d.`t$files` where id = 5",
    "with c as (select 1) select * from d.t where id = 5", "select ünd from d.t where id = 5",
    "from d.t select * where id = 5", "select from d.t where id = 5",
    "select * from a.d.t where id = 5", "select id, from d.t where id = 5",
]  # fmt: skip


@pytest.mark.parametrize("text", [*(f"select * from d.t where {one}" for one in CONDITIONS), *TEXTS])
def test_other_texts_are_sparks(text: str) -> None:
    """Expressions, aliases, other comparisons, clauses, literals that Spark might read otherwise, names that it has."""
    assert read_key_query(text) is None, text
