"""A branch is read and written by a handle of its own; main sees nothing of it before a fast-forward."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, Table
from tablestore_engine.errors import Fenced, PublishPending, TablestoreError
from tablestore_engine.warehouse.log.logs import Logs

ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]})


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Table]:
    """d.orders with two rows, and its branch dev of that state."""
    with Engine(str(tmp_path)) as engine:
        engine.create_database("d")
        made = engine.create_table("d.orders", ROWS.schema, primary_key="id")
        made.upsert(ROWS)
        made.create_branch("dev", snapshot=1)
        yield made


def test_writes_of_a_branch_stay_there_until_it_is_brought_to_main(orders: Table) -> None:
    """Each kind of write, in the branch's own numbers; then main has all of its snapshots."""
    dev = orders.branch("dev")
    assert dev.upsert([{"ID": 3, "v": "c"}]).summary() == "snapshot 2 (+1 ~0 -0)"
    dev.delete("id = 1")
    dev.overwrite([{"id": 9, "v": "z"}], filter="id = 3")
    dev.upsert(pa.table({"id": [2], "v": ["b"], "_ROW_KIND": pa.array([3], pa.int8())}))
    assert dev.scan(columns=["id"]).to_arrow().to_pylist() == [{"id": 9}]
    assert sorted(orders.to_arrow()["id"].to_pylist()) == [1, 2]
    assert [one.id for one in dev.snapshots()] == [1, 2, 3, 4, 5]
    assert orders.fast_forward("dev").added == (2, 3, 4, 5)
    assert orders.to_arrow()["v"].to_pylist() == ["z"]
    assert orders.changes(1).num_rows > 0
    assert orders.verify() == ()


def test_an_append_table_has_branches_too(tmp_path: Path) -> None:
    """Empty, then with rows of its own."""
    with Engine(str(tmp_path)) as engine:
        engine.create_database("d")
        events = engine.create_table("d.events", ROWS.schema)
        events.create_branch("empty")
        assert events.branch("empty").append(ROWS).inserted == 2
        assert events.fast_forward("empty").added == (1,)
        assert len(events) == 2


def test_system_tables_of_a_branch_are_its_own(orders: Table) -> None:
    """Snapshots, files and rows."""
    dev = orders.branch("dev")
    dev.upsert([{"id": 3, "v": "c"}])
    assert dev.system_table("snapshots").num_rows == 2
    assert orders.system_table("snapshots").num_rows == 1
    assert sum(dev.system_table("files").column("record_count").to_pylist()) == 3
    assert dev.system_table("audit_log", since=1)["rowkind"].to_pylist() == ["+I"]


def test_what_a_branch_does_not_do_is_refused_by_name(orders: Table) -> None:
    """Other columns, certification, two beginnings, another name: nothing is changed."""
    dev = orders.branch("dev")
    calls = {
        "TS1372": dev.certify,
        "TS1374": lambda: orders.create_branch("both", snapshot=1, tag="t"),
        "TS1346": lambda: orders.branch("nothing"),
        "TS1350": lambda: orders.create_branch("dev", snapshot=1),
    }
    for code, call in calls.items():
        with pytest.raises(TablestoreError, match=code):
            call()
    with pytest.raises(TablestoreError, match="TS1062"):
        dev.upsert([{"id": 4, "other": 1}])
    assert (orders.branches(), len(dev), len(orders)) == (("dev",), 2, 2)


def test_a_table_with_branches_is_dropped_with_them(orders: Table) -> None:
    """A table of the same name has none."""
    name = "d.orders"
    warehouse = str(Path(orders.store.location).parent.parent)
    with Engine(warehouse) as engine:
        engine.drop_table(name)
        again = engine.create_table(name, ROWS.schema, primary_key="id")
        assert again.branches() == ()


def test_verify_finds_damage_in_a_branch(orders: Table) -> None:
    """A data file that the branch alone names is gone."""
    dev = orders.branch("dev")
    dev.upsert([{"id": 5, "v": "e"}])
    shared = set(orders.system_table("files")["file_path"].to_pylist())
    own = set(dev.system_table("files")["file_path"].to_pylist()) - shared
    assert orders.verify() == ()
    Path(own.pop()).unlink()
    with Engine(str(Path(orders.store.location).parent.parent)) as engine:
        problems = engine.table("d.orders").verify()
    assert problems
    assert all(one.startswith("branch dev: ") for one in problems)


def test_a_log_that_fails_after_a_fast_forward_is_pending(
    orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Main has moved: the error says so, whatever the log's own one is."""
    orders.branch("dev").upsert([{"id": 3, "v": "c"}])

    def fail(*_: object) -> None:
        raise Fenced("TS1710", "the log failed", why="another publisher took over", fix="publish again")

    monkeypatch.setattr(Logs, "published", fail)
    with pytest.raises(PublishPending) as pending:
        orders.fast_forward("dev")
    assert pending.value.facts["snapshot"] == 2
    assert len(orders) == 3
