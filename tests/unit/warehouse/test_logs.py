"""The logs of a warehouse through the port: everything but Kafka, on a log in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import OnSchemaChange, SparkSettings, Table, TableSpec, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixData, FixRequest, PublishPending, RetryError, Unsupported
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spi import LogPosition
from tablestore_engine.sql.statement import AddColumns
from tablestore_engine.warehouse.statements.table_actions import TableActions
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.incoming_rows import from_arrow
from tablestore_engine.warehouse.write_report import WriteReport
from tests.unit.store.table_world import acting
from tests.unit.warehouse.memory_log import MemoryLog, MemorySystem

NAME = Identifier("d", "t")
LOGGED = TableSpec(primary_key=("id",), options={"log.system": "kafka", "kafka.topic": "orders"})
BARE = TableSpec(primary_key=("id",))


def write(
    warehouse: Warehouse, *rows: tuple[int, str], table: TableSpec = LOGGED, stage: str | None = None
) -> WriteReport:
    """One commit of (id, v)."""
    arrow = pa.table({"id": [key for key, _ in rows], "v": [value for _, value in rows]})
    return warehouse.write_incoming(NAME, from_arrow(arrow), WriteSpec(table=table, stage=stage))


def open_both(root: Path) -> tuple[Warehouse, MemorySystem]:
    """A warehouse and the log system that it was given."""
    system = MemorySystem()
    return Warehouse(str(root), SparkSettings(), system, SYSTEM), system


def table(warehouse: Warehouse) -> Table:
    """The table as users have it."""
    return Table(warehouse, NAME, warehouse.stores.get(NAME))


def test_a_commit_is_in_the_log_when_it_returns(tmp_path: Path) -> None:
    """Kinds and order of the changelog; the report says where, under the system's own name."""
    warehouse, system = open_both(tmp_path)
    first = write(warehouse, (1, "a"), (2, "a"))
    assert first.log == LogPosition("memory", "orders", {0: (0, 2)})
    assert first.summary() == "snapshot 1 (+2 ~0 -0) · memory orders[0] 0..2"
    second = write(warehouse, (2, "b"))
    assert second.log == LogPosition("memory", "orders", {0: (2, 4)})
    kinds = [(message.snapshot_id, message.kind) for message in table(warehouse).log_messages()]
    assert kinds == [
        (1, RowKind.INSERT), (1, RowKind.INSERT), (2, RowKind.UPDATE_BEFORE), (2, RowKind.UPDATE_AFTER)
    ]  # fmt: skip
    assert table(warehouse).facts().log == "orders"
    assert table(warehouse).publish().log == LogPosition("memory", "orders", {})
    assert [number for number, _ in system.logs["orders"].sent] == [1, 2]


def test_new_table_that_cannot_be_written_makes_no_log(tmp_path: Path) -> None:
    """A schema that is refused by name leaves no topic behind, by CREATE and by a first write."""
    warehouse, system = open_both(tmp_path)
    spec = replace(LOGGED, options={**LOGGED.options, "row-tracking.enabled": "true"})
    rows = from_arrow(pa.table({"id": [1]}))
    warehouse.catalog.create_database(NAME.database)
    with pytest.raises(Unsupported, match=r"row-tracking\.enabled=true"):
        warehouse.writer.create_empty(NAME, rows, spec)
    with pytest.raises(Unsupported, match=r"row-tracking\.enabled=true"):
        warehouse.write_incoming(NAME, rows, WriteSpec(table=spec))
    assert system.logs == {}


def test_a_table_that_is_dropped_behind_a_commit_owes_nothing(tmp_path: Path) -> None:
    """With a log and without: the write is told as what it was, and nothing is called pending."""
    for spec in (BARE, LOGGED):
        other, _ = open_both(tmp_path)
        dropping = acting("commit.done", lambda warehouse=other: warehouse.relations.drop_table(NAME))
        warehouse = Warehouse(str(tmp_path), SparkSettings(), MemorySystem(), dropping)
        report = write(warehouse, (1, "a"), table=spec)
        assert (report.snapshot_id, report.inserted, report.log) == (1, 1, None)
        assert warehouse.stores.find(NAME) is None


def test_a_log_in_trouble_stops_the_commit(tmp_path: Path) -> None:
    """Before a commit, before the claim of a staged one (TS1082), and before a new table: nothing is there."""
    warehouse, system = open_both(tmp_path)
    system.broken = {"prepare"}
    with pytest.raises(RetryError, match="TS1799"):
        write(warehouse, (1, "a"))
    assert warehouse.stores.find(NAME) is None
    system.broken = set()
    write(warehouse, (1, "a"))
    write(warehouse, (2, "a"), stage="s")
    system.broken = {"check"}
    with pytest.raises(RetryError, match="TS1799"):
        write(warehouse, (3, "a"))
    with pytest.raises(RetryError, match="TS1082"):
        warehouse.publish_staged(NAME, "s")
    assert table(warehouse).snapshot_ids() == (1,)
    system.broken = set()
    assert warehouse.publish_staged(NAME, "s").log == LogPosition("memory", "orders", {0: (1, 2)})


def test_what_is_pending_goes_out_with_the_next_commit(tmp_path: Path) -> None:
    """TS1070 has the report and the system's flags; nothing is sent twice, the order is that of the snapshots."""
    warehouse, system = open_both(tmp_path)
    write(warehouse, (1, "a"))
    system.broken = {"publish"}
    with pytest.raises(PublishPending, match="TS1070") as pending:
        write(warehouse, (2, "a"))
    assert "snapshot 2 of d.t is committed" in str(pending.value)
    assert "`tablestore publish d.t` (--memory), sends what is pending" in str(pending.value)
    system.broken = set()
    write(warehouse, (3, "a"))
    assert [message.snapshot_id for message in table(warehouse).log_messages()] == [1, 2, 3]


def test_a_row_that_the_log_cannot_carry_is_refused_before_the_commit(tmp_path: Path) -> None:
    """The limit is the sink's."""
    warehouse, _ = open_both(tmp_path)
    write(warehouse, (1, "a"))
    with pytest.raises(FixData, match="TS1739"):
        write(warehouse, (2, "x" * 101))
    assert table(warehouse).snapshot_ids() == (1,)


def test_a_log_begins_anew_where_it_is_told(tmp_path: Path) -> None:
    """Without a log TS1030 with the options that the system needs; behind the table's end TS1031."""
    warehouse, _ = open_both(tmp_path)
    write(warehouse, (1, "a"), table=BARE)
    with pytest.raises(FixRequest, match="TS1030") as without:
        table(warehouse).reset_log(0)
    assert "set log.system and something first" in str(without.value)
    warehouse.relations.drop_table(NAME)
    for number in range(3):
        write(warehouse, (number, "a"))
    with pytest.raises(FixRequest, match="TS1031"):
        table(warehouse).reset_log(4)
    table(warehouse).reset_log(1)
    table(warehouse).publish()
    assert [message.snapshot_id for message in table(warehouse).log_messages()] == [2, 3]


def test_a_log_goes_with_its_table_when_it_was_made_for_it(tmp_path: Path) -> None:
    """First the log: where it cannot be reached the table stays. One that was there before is left."""
    warehouse, system = open_both(tmp_path)
    write(warehouse, (1, "a"))
    system.broken = {"drop"}
    with pytest.raises(RetryError, match="TS1799"):
        warehouse.relations.drop_table(NAME)
    assert table(warehouse).snapshot_ids() == (1,)
    system.broken = set()
    warehouse.relations.drop_table(NAME)
    assert system.logs == {}
    assert system.closed == ["orders"]
    system.logs["orders"] = MemoryLog()
    write(warehouse, (1, "a"))
    warehouse.relations.drop_table(NAME)
    assert list(system.logs) == ["orders"]


def test_columns_that_the_log_cannot_carry_are_refused_before_they_come(tmp_path: Path) -> None:
    """By a write that brings a column, by one that is staged with it and claimed later, and by ALTER TABLE."""
    warehouse, system = open_both(tmp_path)
    write(warehouse, (1, "a"))
    wider = from_arrow(pa.table({"id": [2], "v": ["b"], "n": [1]}))
    adding = WriteSpec(table=LOGGED, on_schema_change=OnSchemaChange.APPEND_NEW_COLUMNS)
    warehouse.write_incoming(NAME, wider, replace(adding, stage="s"))
    system.broken = {"check_schema"}
    write(warehouse, (3, "c"))  # brings no column, so nothing is asked
    with pytest.raises(RetryError, match="TS1799"):
        warehouse.write_incoming(NAME, wider, adding)
    with pytest.raises(RetryError, match="TS1082"):
        warehouse.publish_staged(NAME, "s")
    actions = TableActions(warehouse)
    column = DataField(9, "m", parse_type("BIGINT"))
    with pytest.raises(RetryError, match="TS1799"):
        actions.alter("d", "t", AddColumns(()), (column,))
    assert table(warehouse).schema.field_names == ("id", "v")
    assert table(warehouse).snapshot_ids() == (1, 2)
    system.broken = set()
    actions.alter("d", "t", AddColumns(()), (column,))
    assert table(warehouse).schema.field_names == ("id", "v", "m")


def test_messages_come_back_as_rows(tmp_path: Path) -> None:
    """In their order and with their kinds; a table without a log has none."""
    warehouse, _ = open_both(tmp_path)
    write(warehouse, (1, "a"))
    write(warehouse, (1, "b"))
    assert table(warehouse).log_rows().to_pylist() == [
        {"id": 1, "v": "a", "_ROW_KIND": 0}, {"id": 1, "v": "a", "_ROW_KIND": 1}, {"id": 1, "v": "b", "_ROW_KIND": 2}
    ]  # fmt: skip
    other, _ = open_both(tmp_path / "bare")
    write(other, (1, "a"), table=BARE)
    assert table(other).log_rows().num_rows == 0
    assert table(other).log_rows().column_names == ["id", "v", "_ROW_KIND"]
