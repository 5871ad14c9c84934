"""Calls that users of pandas, polars and pyiceberg try: each works, or its error names the right one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.api.guessed_names import OF_ENGINE, OF_TABLE


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """With shop.orders: three keys in two snapshots, of which the second changes one."""
    made = Engine(str(tmp_path))
    table = made.create_table("shop.orders", [{"id": 1, "amount": 1.5}], primary_key="id")
    table.upsert([{"id": number, "amount": number * 1.5} for number in (1, 2, 3)])
    table.upsert([{"id": 2, "amount": 9.0}])
    return made


def test_table_is_read_without_a_scan(engine: Engine) -> None:
    """Each library gets the rows of the current state, and counts agree with them."""
    table = engine.table("shop.orders")
    expected = {1: 1.5, 2: 9.0, 3: 4.5}
    assert dict(zip(*table.to_arrow().to_pydict().values(), strict=True)) == expected
    assert dict(table.to_polars().rows()) == dict(table.to_duckdb().fetchall()) == expected
    assert dict(table.to_pandas().itertuples(index=False)) == expected
    assert (table.count(), len(table), table.head(2).height, table.head(0).height) == (3, 3, 2, 0)


def test_count_agrees_with_the_rows_after_deletes(engine: Engine) -> None:
    """Rows that a deletion vector hides are no rows, also after the table was compacted and emptied."""
    table = engine.table("shop.orders")
    for change, left in (("id = 2", 2), ("id = 1", 1), ("id > 0", 0)):
        table.delete(change)
        assert table.count() == table.to_arrow().num_rows == left
        table.compact(full=True)
        assert table.count() == table.to_arrow().num_rows == left


def test_table_without_rows_is_true(tmp_path: Path) -> None:
    """`if table:` asks for the handle, as before it had a length."""
    table = Engine(str(tmp_path)).create_table("d.t", [{"id": 1}], primary_key="id")
    assert (bool(table), len(table)) == (True, 0)


def test_tables_are_listed_and_looked_for(engine: Engine) -> None:
    """Of one database or of all, by full name."""
    engine.create_table("other.t", [{"id": 1}])
    assert engine.list_tables() == ("other.t", "shop.orders")
    assert engine.list_tables("shop") == ("shop.orders",)
    assert (engine.exists("shop.orders"), engine.exists("shop.nothing")) == (True, False)


@pytest.mark.parametrize(
    "name", [*(f"table.{one}" for one in OF_TABLE), *(f"engine.{one}" for one in OF_ENGINE)]
)
def test_name_of_another_library_is_refused_with_the_right_call(engine: Engine, name: str) -> None:
    """AttributeError; the method that it names exists, and the guess does not."""
    owner, _, guess = name.partition(".")
    handle: Any = engine if owner == "engine" else engine.table("shop.orders")
    right = (OF_ENGINE if owner == "engine" else OF_TABLE)[guess]
    with pytest.raises(AttributeError, match="use ") as refused:
        getattr(handle, guess)
    assert right in str(refused.value)
    method = right.removeprefix("engine.").partition("(")[0].partition(".")[0]
    assert (
        callable(getattr(engine if right.startswith("engine.") else handle, method, None))
        or method == "schema"
    )
    assert not hasattr(handle, "nothing_like_it")
