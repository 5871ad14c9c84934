"""Names whose catalog a template left empty."""

from __future__ import annotations

import pytest

from tablestore_engine.sql.empty_catalog import drop_empty_catalogs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select * from None.demo.orders", "select * from demo.orders"),
        ("select * from .demo.orders o", "select * from demo.orders o"),
        ("select * from `None`.`demo`.`orders`", "select * from `demo`.`orders`"),
        ("select 1 from a.b join None.c.d x on x.i = b.i", "select 1 from a.b join c.d x on x.i = b.i"),
        ("drop table if exists None.c.d", "drop table if exists c.d"),
        ("insert into None.c.d select 1", "insert into c.d select 1"),
        ("describe table extended .c.d", "describe table extended c.d"),
        ("select * from /* a */ None . c . d", "select * from /* a */  c . d"),
    ],
)
def test_an_empty_catalog_is_dropped(text: str, expected: str) -> None:
    """Whatever stands between the words."""
    assert drop_empty_catalogs(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "select None.a.b from t as None",  # a field of a column of a table that is named so
        "select * from none.orders",
        "select * from None.orders",
        "select * from NONE.a.b",
        "select 'from None.a.b', .5 from a.b -- from None.a.b",
        "select x from .5",
        "select * from spark_catalog.a.b",
        "select extract(day from .5)",
        "select 1",
    ],
)
def test_everything_else_stays(text: str) -> None:
    """Byte for byte."""
    assert drop_empty_catalogs(text) == text
