"""Mistyped names: errors of changes and of names without a database suggest the nearest table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, NotFound, WriteSpec
from tablestore_engine.errors import FixRequest

SCHEMA = pa.schema({"id": pa.int64()})


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Two databases with a table each."""
    engine = Engine(str(tmp_path))
    engine.create_table("demo.orders", SCHEMA)
    engine.create_table("shop.items", SCHEMA)
    return engine


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("demo.ordres", "demo.orders"),
        ("demo.Orders", "demo.orders"),
        ("dmo.orders", "demo.orders"),
        ("shop.itms", "shop.items"),
        ("shop.something_else", None),
    ],
)
def test_dropped_table_that_is_missing_names_the_nearest(engine: Engine, name: str, near: str | None) -> None:
    """Nothing is suggested where no name is near."""
    with pytest.raises(NotFound) as caught:
        engine.drop_table(name)
    hint = "" if near is None else f"; did you mean {near}?"
    assert caught.value.code == "TS1407"
    assert caught.value.fix == f"correct the name, or build the model first{hint}"


_CALLS: dict[str, Callable[[Engine, str], object]] = {
    "table": lambda engine, name: engine.table(name),
    "find": lambda engine, name: engine.find_table(name),
    "drop": lambda engine, name: engine.drop_table(name),
    "write": lambda engine, name: engine.write(name, [{"id": 1}], WriteSpec()),
    "columns": lambda engine, name: engine.columns(name),
    "clone": lambda engine, name: engine.clone(name, "demo.other"),
}


@pytest.mark.parametrize("call", _CALLS)
def test_name_without_database_suggests_full_names(engine: Engine, call: str) -> None:
    """The last word counts, also of a name with three parts; a near word counts where none is equal."""
    engine.create_table("shop.orders", SCHEMA)
    for name, hint in {
        "orders": "; did you mean demo.orders or shop.orders?",
        "spark_catalog.demo.orders": "; did you mean demo.orders or shop.orders?",
        "itms": "; did you mean shop.items?",
        "nothing": "",
        "": "",
    }.items():
        with pytest.raises(FixRequest) as caught:
            _CALLS[call](engine, name)
        assert caught.value.code == "TS1402"
        assert caught.value.fix == f"write both parts, as in demo.orders{hint}"
