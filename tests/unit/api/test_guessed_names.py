"""Calls that users of pandas, polars and pyiceberg try: each works, or its error names the right one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablestore_engine.api import Engine
from tablestore_engine.api.guessed_names import OF_ENGINE, OF_TABLE
from tablestore_engine.errors import TablestoreError


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


GUESSES = """
    table.append([{"id": 9, "amount": 1.0}])        TS1568: a keyed table takes upsert
    table.delete(where="id = 3")
    table.scan(columns=["id"]).filter("amount > 2").filter(pc.field("id") < 3).to_polars()
    table.scan().select("amount").to_pandas()
    table.scan(timestamp=datetime.now(UTC)).to_arrow()
    table.scan(timestamp=1, timestamp_ms=2)          TS1569: one of them
    table.create_tag("v1")
    table.create_tag("first", snapshot=1)
    table.tags()
    table.to_polars(snapshot=1)
    table.to_arrow(tag="first")
    table.history()
    table.changelog()
    table.rollback_to(2)
    table.restore(1)
    table.add_column("note", "string")
    table.add_column("at", pa.timestamp("us", "UTC"))
    table.add_column("when", "array<timestamp>")     TS1142: a zone or none
    table.rename_column("NOTE", "label")
    table.drop_column("label")
    table.drop_column("id")                          TS1125: a key
    table.expire_snapshots(keep=1)
    table.scan(limit=1).filter("id > 1")             TS1569: a limit counts before it
    table.scan(columns=["id"]).select("amount")      TS1569: not one of the scan's
    table.delete_tag("first")
    engine.tables("shop")
"""


def test_guesses_in_turn(engine: Engine) -> None:
    """Each line works, or is refused with its code."""
    names = {
        "engine": engine,
        "table": engine.table("shop.orders"),
        "pc": pc,
        "pa": pa,
        "UTC": UTC,
        "datetime": datetime,
    }
    for line in GUESSES.strip().splitlines():
        call, _, code = line.partition("  TS")
        if code:
            with pytest.raises(TablestoreError, match=f"TS{code[:4]}"):
                eval(call.strip(), names)
        else:
            eval(call.strip(), names)


def test_narrowed_scans_and_altered_columns_have_the_rows(engine: Engine) -> None:
    """Filters are joined, states are those that are named, a new column is NULL in stored rows."""
    table = engine.table("shop.orders")
    scan = table.scan(columns=["id"]).filter("amount > 2").filter(pc.field("id") < 3)
    assert scan.to_arrow().to_pylist() == [{"id": 2}]
    assert "(amount > 2) and (" in repr(scan)
    assert table.scan(filter="amount > 2").select("amount", "id").to_polars().rows() == [(9.0, 2), (4.5, 3)]
    assert table.to_polars(snapshot=1)["amount"].to_list() == [1.5, 3.0, 4.5]
    table.add_column("note", "string")
    table.rename_column("amount", "price")
    assert {"id": 1, "price": 1.5, "note": None} in table.to_arrow().to_pylist()
    table.drop_column("price")
    assert table.to_arrow().column_names == ["id", "note"]
    assert table.changelog().num_rows == table.changes(0).num_rows
    assert (table.tags(), table.history()) == (table.list_tags(), table.snapshots())


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


def test_warehouse_of_a_path_is_that_of_its_text(tmp_path: Path) -> None:
    """Paths of pathlib are taken, also for scratch; what is neither text nor a path is refused by its type."""
    with Engine(tmp_path / "w", scratch=tmp_path / "scratch") as engine:
        engine.create_table("shop.orders", [{"id": 1}], primary_key="id")
        assert engine.warehouse == Engine(str(tmp_path / "w")).warehouse
    assert Engine(str(tmp_path / "w")).exists("shop.orders")
    with pytest.raises(TypeError, match="not int"):
        Engine(5)  # type: ignore[arg-type] # as a user may


def test_property_that_fails_says_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An AttributeError inside a property is not taken for an unknown name of the handle."""

    def fail(_: object) -> None:
        raise AttributeError("the true one")

    for owner in (Engine(tmp_path), Engine(tmp_path).create_table("shop.t", [{"id": 1}], primary_key="id")):
        with monkeypatch.context() as planted:
            planted.setattr(type(owner), "broken", property(fail), raising=False)
            with pytest.raises(AttributeError, match="the true one"):
                owner.broken  # type: ignore[attr-defined] # noqa: B018 - planted just now
