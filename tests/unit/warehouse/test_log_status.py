"""How far a log is behind: what is counted is what publishing then sends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tablestore_engine.api import SparkSettings, TableSpec, WriteMode, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import RetryError
from tablestore_engine.log.sink import EarlyState, LogState, LogWriter
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.warehouse.log.log_status import LogStatus, Pending, find_contradiction, read_status
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.incoming_rows import from_arrow
from tablestore_engine.warehouse.write_report import WriteReport
from tests.doses import examples
from tests.unit.warehouse.memory_log import MemorySystem

NAME = Identifier("d", "t")
LOG = {"log.system": "kafka", "kafka.topic": "orders"}
NOW = 5_000_000


def open_both(root: Path) -> tuple[Warehouse, MemorySystem]:
    """A warehouse whose clock stands still, and its log."""
    system = MemorySystem()
    return Warehouse(str(root), SparkSettings(), system, replace(SYSTEM, now_ms=lambda: NOW)), system


def write(
    warehouse: Warehouse, ids: list[int], *, key: bool, publish: bool, mode: WriteMode | None = None
) -> None:
    """One commit of (id, v); without a key rows are appended."""
    rows = pa.table({"id": pa.array(ids, pa.int64()), "v": [f"v{len(ids)}"] * len(ids)})
    table = TableSpec(primary_key=("id",) if key else (), options=LOG)
    how = mode or (WriteMode.UPSERT if key else WriteMode.APPEND)
    warehouse.write_incoming(NAME, from_arrow(rows), WriteSpec(table=table, mode=how, publish=publish))


def look(warehouse: Warehouse) -> LogStatus:
    """As `tablestore log show`."""
    status = warehouse.logs.look(NAME)
    assert status is not None
    return status


@settings(
    max_examples=examples(12, 25), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    st.booleans(),
    st.lists(st.tuples(st.sets(st.integers(0, 6), min_size=1), st.booleans()), min_size=1, max_size=5),
)
def test_what_is_pending_is_what_will_be_sent(
    tmp_path_factory: pytest.TempPathFactory, key: bool, commits: list[tuple[set[int], bool]]
) -> None:
    """Over random commits, of which some replace the whole table: snapshots and rows, then nothing any more.

    How many rows differ after an overwrite without a changelog is not known before they are read.
    """
    warehouse, system = open_both(tmp_path_factory.mktemp("w"))
    write(warehouse, [1, 2, 3], key=key, publish=True)
    for ids, replaces in commits:
        mode = WriteMode.OVERWRITE_TABLE if replaces else None
        write(warehouse, sorted(ids), key=key, publish=False, mode=mode)
    before, already = look(warehouse), len(system.logs["orders"].messages)
    warehouse.logs.published(NAME, _report(warehouse))
    sent = len(system.logs["orders"].messages) - already
    assert before.pending is not None
    assert before.pending.snapshots == (before.newest or 0) - 1
    is_known = key or not any(replaces for _, replaces in commits)
    assert before.pending.rows == (sent if is_known else None)
    after = look(warehouse)
    assert after.pending == Pending(0, 0, None)
    assert after.pending.seconds(NOW) == 0
    assert after.trouble is None


def _report(warehouse: Warehouse) -> WriteReport:
    return WriteReport(NAME, warehouse.stores.get(NAME).snapshots.find_latest_id())


def test_seconds_are_those_of_the_oldest(tmp_path: Path) -> None:
    """Since the first snapshot that the log lacks was committed; a clock that went back gives 0."""
    warehouse, _ = open_both(tmp_path)
    write(warehouse, [1], key=True, publish=True)
    write(warehouse, [2], key=True, publish=False)
    pending = look(warehouse).pending
    assert pending is not None
    assert (pending.since_ms, pending.seconds(NOW + 2500), pending.seconds(NOW - 9)) == (NOW, 2.5, 0)


def test_a_table_without_a_log_and_a_log_that_does_not_answer(tmp_path: Path) -> None:
    """None, and the log's own error."""
    warehouse, system = open_both(tmp_path)
    write(warehouse, [1], key=True, publish=True)
    rows = from_arrow(pa.table({"id": [1]}))
    warehouse.write_incoming(Identifier("d", "bare"), rows, WriteSpec(table=TableSpec(primary_key=("id",))))
    assert warehouse.logs.look(Identifier("d", "bare")) is None
    system.broken = {"look"}
    with pytest.raises(RetryError, match="TS1799"):
        warehouse.logs.look(NAME)


@pytest.mark.parametrize(
    ("reached", "newest", "said"),
    [
        (None, 3, "no marker"),
        (5, 3, "TS1708"),
        (1, None, "TS1708"),
        (3, 3, None),
        (0, None, None),
        (2, 3, None),
    ],
)
def test_two_histories(reached: int | None, newest: int | None, said: str | None) -> None:
    """A log without progress, one ahead of its table, and those that fit."""
    found = find_contradiction(reached, newest)
    assert (found is None) == (said is None)
    assert said is None or said in (found or "")


def test_an_early_log_without_markers_has_to_be_told(tmp_path: Path) -> None:
    """Its rows do not say of which snapshot they are, so that looking at them, as elsewhere, is no way out."""
    assert "--reset" in (find_contradiction(None, 3, is_early=True) or "")
    assert "--reset" not in (find_contradiction(None, 3) or "")
    warehouse, _ = open_both(tmp_path)
    write(warehouse, [1], key=True, publish=True)
    state = LogState("memory", "orders", None, None, 0, {}, {}, LogWriter("w"), {}, EarlyState())
    assert "TS1707" in (read_status("d.t", warehouse.stores.get(NAME), state, NOW).trouble or "")


def test_a_gap_is_told(tmp_path: Path) -> None:
    """The next snapshot to send is gone; what the table has behind it is still counted."""
    warehouse, _ = open_both(tmp_path)
    for number in (1, 2, 3):
        write(warehouse, [number], key=True, publish=number == 1)
    store = warehouse.stores.get(NAME)
    Path(store.location, "snapshot", "snapshot-2").unlink()
    state = LogState("memory", "orders", 1, None, 0, {}, {}, LogWriter("w"), {})
    status = read_status("d.t", store, state, NOW)
    assert "TS1733" in (status.trouble or "")
    assert status.pending is not None
    assert (status.pending.snapshots, status.pending.rows) == (2, 1)
