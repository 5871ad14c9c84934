"""Which tables' changes a text reads."""

from __future__ import annotations

import pytest

from tablestore_engine.sql.changed_tables import changed_tables


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select * from demo.orders", ()),
        ("select * from demo__changes_start_to_now.orders", ("demo.orders",)),
        (
            "select * from `Demo__changes_5_to_9`.`Orders` o join demo__changes_start_to_now.orders",
            ("demo.orders",),
        ),
        (
            "select * from demo__changes_5_to_branch_x.a union all select * from demo__changes_start_to_3.b",
            ("demo.a", "demo.b"),
        ),
        ("select 'demo__changes_1_to_2.a' from demo__at_snapshot_3.b -- demo__changes_1_to_2.c", ()),
    ],
)
def test_each_table_once(text: str, expected: tuple[str, ...]) -> None:
    """Whatever the range is; strings, comments and other versions are nothing."""
    assert changed_tables(text) == expected
