"""A small warehouse written through Engine.write, and the command line run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.cli.main import main

KEYED = TableSpec(primary_key=("order_id",), comment="orders of the shop")


@dataclass(frozen=True)
class Done:
    """One command that has run."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


Run = Callable[..., Done]


def orders(*rows: tuple[int, str, float], kinds: list[int] | None = None) -> pa.Table:
    """Rows of demo.orders, with row kinds when given."""
    ids, customers, amounts = zip(*rows, strict=True)
    table = pa.table({"order_id": list(ids), "customer": list(customers), "amount": list(amounts)})
    return table if kinds is None else table.append_column("_ROW_KIND", pa.array(kinds, pa.int8()))


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Snapshot 1: orders 1, 2, 3 · snapshot 2: 2 changes, 4 comes · snapshot 3: 1 goes."""
    folder = tmp_path / "warehouse"
    engine = Engine(str(folder))
    spec = WriteSpec(table=KEYED)
    engine.write("demo.orders", orders((1, "ann", 1.5), (2, "bob", 2.5), (3, "cy", 3.5)), spec)
    engine.write("demo.orders", orders((2, "bob", 2.0), (4, "dee", 4.0)), spec)
    engine.write("demo.orders", orders((1, "ann", 1.5), kinds=[3]), spec)
    append = WriteSpec(table=TableSpec(partition_by=("day",)), mode=WriteMode.APPEND)
    engine.write("demo.events", pa.table({"id": [1, 2], "day": ["mon", "tue"]}), append)
    engine.create_view("demo.big", "select * from demo.orders where amount > 2")
    return folder


@pytest.fixture
def engine(warehouse: Path) -> Engine:
    """Another handle on the warehouse."""
    return Engine(str(warehouse))


@pytest.fixture
def run(warehouse: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("files", "demo.orders", "--json")` in the folder that holds the warehouse."""
    monkeypatch.chdir(warehouse.parent)
    for name in ("TABLESTORE_WAREHOUSE", "TABLESTORE_KAFKA", "TABLESTORE_KAFKA_CONFIG"):
        monkeypatch.delenv(name, raising=False)

    def run_command(*words: str) -> Done:
        capsys.readouterr()
        status = main(words)
        printed = capsys.readouterr()
        return Done(status, printed.out, printed.err)

    return run_command
