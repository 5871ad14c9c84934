"""Names of tables in a text are replaced, and nothing else."""

from __future__ import annotations

import pytest

from tablestore_engine.sql.renamed_tables import StandIn, rename_tables

NAMES = {("demo__new", "orders"): StandIn("v", "orders")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select * from demo__new.orders", "select * from (`v` as `orders`)"),
        ("select * from `demo__new`.`orders` o", "select * from (`v` as `orders`) o"),
        ("select demo__new.orders.id from Demo__New . Orders", "select `orders`.id from (`v` as `orders`)"),
        ("select 'demo__new.orders' -- demo__new.orders", "select 'demo__new.orders' -- demo__new.orders"),
        (
            "select * from demo.orders, other.demo__new.orders",
            "select * from demo.orders, other.demo__new.orders",
        ),
        ("select a.demo__new.orders from a", "select a.demo__new.orders from a"),
        (
            "from demo__new.orders join demo__new.orders b",
            "from (`v` as `orders`) join (`v` as `orders`) b",
        ),
        ("table demo__new.orders", "table `v`"),
        ("select * from f(table(demo__new.orders))", "select * from f(table(`v`))"),
        ("demo__new.", "demo__new."),
    ],
)
def test_only_names_of_tables_change(text: str, expected: str) -> None:
    """Quoted or not, in any case; strings, comments, columns and other names stay."""
    assert rename_tables(text, NAMES) == expected
