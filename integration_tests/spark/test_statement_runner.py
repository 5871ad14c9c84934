"""Statements change a table through TableActions exactly as SQL says; a dictionary plays the table."""
# ruff: noqa: D102, E501 - the methods are those of TableActions; statements read best on one line

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from integration_tests.spark.tables import LOCAL_READS, StubTables, parquet_file, scan
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixData, FixRequest, NotFound, Unsupported
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark.fetch_rows import Fetched
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.session import session_scratch
from tablestore_engine.spark.spark_settings import SparkSettings
from tablestore_engine.spark.spark_types import fields_from_spark
from tablestore_engine.spark.write import collect_small
from tablestore_engine.sql.parser import parse
from tablestore_engine.sql.statement import AddColumns, AlterAction, AlterColumn
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.warehouse.statements.running_statement import StatementResult
from tablestore_engine.warehouse.statements.statement_runner import StatementRunner
from tablestore_engine.warehouse.statements.table_actions import RowsRequest, TableWish


@dataclass
class StartedResolver:
    """A LazyResolver that nobody has to wait for."""

    resolver: Resolver

    def get(self) -> Resolver:
        return self.resolver

    def forget(self, identifier: Identifier) -> None:
        self.resolver.forget(identifier.database, identifier.name)


@dataclass
class TextRunner:
    """Statements as text."""

    runner: StatementRunner

    def run(self, text: str, *, limit: int | None = None) -> StatementResult:
        return self.runner.run(parse(text), limit=limit)


@dataclass
class DictActions:
    """Tables as lists of rows; every write makes a Parquet file that the resolver then reads."""

    source: StubTables
    folder: Path
    schemas: dict[tuple[str, str], TableSchema] = field(default_factory=dict)
    requests: list[RowsRequest] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    snapshots: int = 0

    def find_schema(self, database: str, table: str) -> TableSchema | None:
        return self.schemas.get((database, table))

    def near_hint(self, *_: object) -> str:
        return ""

    def create_table(
        self, database: str, table: str, wish: TableWish, *, if_not_exists: bool, replace: bool
    ) -> object:
        self.calls.append(("create", wish, if_not_exists, replace))
        keys = {"primary_keys": wish.primary_key, "partition_keys": wish.partition_by}
        options = {"bucket": "1"} if wish.primary_key else {}
        self.schemas[database, table] = new_schema(wish.columns, options=options, **keys)  # type: ignore[arg-type]
        self._put(database, table, [])
        return "created"

    def create_table_as(
        self,
        database: str,
        table: str,
        wish: TableWish,
        frame: DataFrame,
        *,
        if_not_exists: bool,
        replace: bool,
    ) -> object:
        wish = _with_columns(wish, fields_from_spark(frame.schema))
        self.create_table(database, table, wish, if_not_exists=if_not_exists, replace=replace)
        return self.write_rows(database, table, frame, RowsRequest(WriteMode.APPEND))

    def write_rows(self, database: str, table: str, frame: DataFrame, request: RowsRequest) -> object:
        self.requests.append(request)
        schema = self.schemas[database, table]
        new = collect_small(frame).to_pylist()  # type: ignore[union-attr]
        old = self.rows(database, table) if request.mode in (WriteMode.UPSERT, WriteMode.APPEND) else []
        if schema.is_keyed:
            keyed = {tuple(row[k] for k in schema.primary_keys): row for row in old}
            for row in new:
                key, kind = tuple(row[k] for k in schema.primary_keys), row.pop("_ROW_KIND", 0)
                if kind == 3:
                    keyed.pop(key, None)
                else:
                    keyed[key] = row
            old, new = list(keyed.values()), []
        self._put(database, table, [*old, *new])
        return f"wrote {self.snapshots}"

    def truncate(self, database: str, table: str) -> object:
        self._put(database, table, [])
        return "truncated"

    def drop(self, kind: str, database: str, name: str, *, if_exists: bool) -> None:
        self.calls.append(("drop", kind, name, if_exists))
        self.source.states.pop((database, name), None)
        self.source.views.pop((database, name), None)

    def rename(self, kind: str, database: str, name: str, new_database: str, new_name: str) -> None:
        self.calls.append(("rename", kind, name, new_database, new_name))
        self.source.states[new_database, new_name] = self.source.states.pop((database, name))

    def alter(self, database: str, table: str, action: AlterAction, columns: tuple[DataField, ...]) -> None:
        self.calls.append(("alter", action, columns))

    def comment(self, database: str, table: str, text: str | None) -> None:
        self.calls.append(("comment", text))

    def create_view(self, database: str, name: str, sql: str, **rest: Any) -> None:
        self.calls.append(("view", rest))
        self.source.views[database, name] = sql

    def create_schema(self, name: str, *, if_not_exists: bool) -> None:
        self.calls.append(("schema", name, if_not_exists))

    def drop_schema(self, name: str, *, if_exists: bool, cascade: bool) -> None:
        self.calls.append(("drop schema", name, if_exists, cascade))

    def list_schemas(self) -> tuple[str, ...]:
        return ("demo", "other")

    def list_relations(self, database: str) -> tuple[tuple[str, str, str | None], ...]:
        return (("keyed", "table", None), ("seen", "view", None))

    def rows(self, database: str, table: str) -> list[Mapping[str, Any]]:
        """What the table holds."""
        (file,) = self.source.states[database, table][None][1].files
        rows: list[Mapping[str, Any]] = pa.parquet.read_table(file.path).to_pylist()
        return rows

    def _put(self, database: str, table: str, rows: list[Any]) -> None:
        self.snapshots += 1
        schema = self.schemas[database, table]
        data = pa.Table.from_pylist(rows, schema=schema.arrow_schema())
        file = parquet_file(self.folder, f"{table}-{self.snapshots}.parquet", data, schema)
        self.source.put(database, table, f"s{self.snapshots}", scan(schema, file))


def _with_columns(wish: TableWish, columns: tuple[DataField, ...]) -> TableWish:
    return replace(wish, columns=columns)


@pytest.fixture
def actions(tmp_path: Path) -> DictActions:
    """No tables yet."""
    return DictActions(StubTables(), tmp_path)


@pytest.fixture
def runner(spark: SparkSession, warehouse: str, actions: DictActions) -> TextRunner:
    """A runner over them, with a keyed and an append-only table."""
    resolver = Resolver(
        spark,
        actions.source,
        session_scratch(ScratchPlace(warehouse), SparkSettings("local[2]")),
        reads=LOCAL_READS,
    )
    made = TextRunner(StatementRunner(StartedResolver(resolver), actions))
    made.run(
        "create table default.keyed (id bigint not null, v decimal(5,2), at timestamp_ntz, primary key (id))"
    )
    made.run("create table default.plain (id bigint, name varchar(9)) using tablestore")
    made.run("insert into default.keyed values (1, 1.5, date '2026-01-01'), (2, 2.5, null), (3, 3, null)")
    made.run("insert into plain select id, concat('n', id) from keyed")
    return made


def _rows(runner: TextRunner, text: str) -> list[tuple[Any, ...]]:
    return sorted(runner.run(text).fetched.rows)


def test_insert(runner: TextRunner, actions: DictActions) -> None:
    """Values are cast to their columns, columns go by position, by list or by name, missing ones are NULL."""
    assert _rows(runner, "select id, cast(v as string), cast(at as string) from keyed") == [
        (1, "1.50", "2026-01-01 00:00:00"), (2, "2.50", None), (3, "3.00", None)]  # fmt: skip
    runner.run("insert into keyed (AT, id) values (timestamp_ntz '2026-02-02 03:04:05.000006', 4)")
    runner.run("insert into keyed by name select 7.25 as v, 1 as id")
    assert _rows(runner, "select id, cast(v as string) from keyed where id + 0 in (1, 4)") == [
        (1, "7.25"),
        (4, None),
    ]
    assert [request.mode for request in actions.requests] == ["upsert", "append", "upsert", "upsert"]
    with pytest.raises(FixRequest, match="TS1519"):
        runner.run("insert into keyed values (1)")
    with pytest.raises(
        FixData, match=r"TS1526 (.|\n)*column v: a value does not fit decimal\(5,2\): 1234567"
    ):
        runner.run("insert into keyed values (1, 1234567, null)")
    with pytest.raises(NotFound, match="TS1522"):
        runner.run("insert into default.nothing values (1)")


def test_insert_overwrite(runner: TextRunner, actions: DictActions) -> None:
    """OVERWRITE of a plain table replaces it; of a partitioned one the partitions of the rows, or the named one."""
    runner.run("insert overwrite plain values (9, 'x')")
    assert _rows(runner, "select * from plain") == [(9, "x")]
    runner.run("create table parts (id int, dt date, h int) partitioned by (dt, h)")
    runner.run("insert overwrite parts values (1, date '2026-01-01', 2)")
    runner.run("insert overwrite parts partition (dt = '2026-01-02', h) select 1, 2")
    assert actions.requests[-2].mode is WriteMode.OVERWRITE_PARTITIONS
    assert (actions.requests[-1].mode, actions.requests[-1].static_partition) == (
        "overwrite_static",
        {"dt": "2026-01-02"},
    )
    assert [str(row[1]) for row in _rows(runner, "select * from parts")] == ["2026-01-02"]


def test_update_and_delete_keyed(runner: TextRunner, actions: DictActions) -> None:
    """UPDATE and DELETE change the rows whose condition is true, by key, on the state they were computed from."""
    runner.run("update keyed k set v = k.v + 1, at = date '2026-03-03' where v > 2")
    assert _rows(runner, "select id, cast(v as string) from keyed") == [(1, "1.50"), (2, "3.50"), (3, "4.00")]
    assert actions.requests[-1].computed_from is not None
    runner.run("delete from default.keyed where at is null or id = 3 -- and more")
    assert _rows(runner, "select id from keyed") == [(1,), (2,)]
    with pytest.raises(FixRequest, match="TS1518"):
        runner.run("update keyed set id = id + 1")
    with pytest.raises(FixRequest, match=r"TS1505 (.|\n)*`nope` cannot be resolved"):
        runner.run("update keyed set nope = 1")
    runner.run("delete from keyed")
    assert _rows(runner, "select id from keyed") == []


def test_update_and_delete_plain(runner: TextRunner, actions: DictActions) -> None:
    """On append-only tables the same statements overwrite the content; a NULL condition changes nothing."""
    runner.run("insert into plain values (null, null)")
    runner.run("update plain set name = 'u' where id >= 2")
    assert sorted(_rows(runner, "select coalesce(id, 0), coalesce(name, '-') from plain")) == [
        (0, "-"), (1, "n1"), (2, "u"), (3, "u")]  # fmt: skip
    runner.run("delete from plain where id >= 2")
    assert _rows(runner, "select coalesce(id, 0) from plain") == [(0,), (1,)]
    assert actions.requests[-1].mode is WriteMode.OVERWRITE_TABLE


def test_merge(runner: TextRunner, actions: DictActions) -> None:
    """The first WHEN that holds decides: delete, update, insert, and rows that only the target has."""
    runner.run(
        "merge into default.keyed t using (select 1 id, 9 v union all select 2, 8 union all select 5, 7 union all select 6, 0) s"
        " on t.id = s.id when matched and s.v = 9 then delete when matched then update set v = s.v + t.v"
        " when not matched and s.v > 0 then insert (id, v) values (s.id, s.v)"
        " when not matched by source then update set at = timestamp_ntz'2026-05-05'"
    )
    assert _rows(runner, "select id, cast(v as string), cast(at as date) is not null from keyed") == [
        (2, "10.50", False), (3, "3.00", True), (5, "7.00", False)]  # fmt: skip
    runner.run(
        "merge into default.keyed using default.plain as p on keyed.id = p.id when matched then delete"
    )
    assert _rows(runner, "select id from keyed") == [(5,)]
    source = "(select 5L as id, 1 as v, null as at union all select 6L, 2, null)"
    runner.run(
        f"merge into keyed t using {source} s on t.id = s.id when matched then update set * when not matched then insert *"
    )
    assert _rows(runner, "select id, int(v) from keyed") == [(5, 1), (6, 2)]
    with pytest.raises(Unsupported, match="TS1520"):
        runner.run("merge into plain using keyed k on plain.id = k.id when matched then delete")


def test_tables_and_views(runner: TextRunner, actions: DictActions) -> None:
    """DDL arrives parsed; a dropped or renamed name is gone from the session; views are stored as text."""
    report = runner.run(
        "create or replace table made tblproperties ('primary-key'='id') as select 1L id, 'a' t"
    ).report
    assert report == f"wrote {actions.snapshots}"
    wish = next(call[1] for call in reversed(actions.calls) if call[0] == "create")
    assert (wish.primary_key, [f.name for f in wish.columns]) == (("id",), ["id", "t"])
    runner.run(
        "create view seen (a comment 'the a', b) comment 'c' as select id, t from made where t <> 'x;'"
    )
    assert actions.calls[-1][1]["column_comments"] == {"a": "the a"}
    assert runner.run("select a, b from default.seen").fetched == Fetched(
        (("a", "bigint"), ("b", "string")), ((1, "a"),)
    )
    runner.run("alter table made add column d array<decimal(3,1)>")
    action, columns = actions.calls[-1][1:]
    assert isinstance(action, AddColumns)
    assert columns[0].type.element.precision == 3
    runner.run("alter table made alter column t type varchar(20)")
    assert isinstance(actions.calls[-1][1], AlterColumn)
    assert actions.calls[-1][2][0].type.length == 20
    runner.run("drop view if exists seen")
    runner.run("alter table made rename to made2")
    for gone in ("seen", "made"):
        with pytest.raises(NotFound, match="TS1515"):
            runner.run(f"select * from default.{gone}")
    assert _rows(runner, "select id from made2") == [(1,)]
    with pytest.raises(FixRequest, match="TS1505"):
        runner.run("create view broken as select nope from made2")
    with pytest.raises(Unsupported, match="TS1502"):
        runner.run("create table t using parquet as select 1")


def test_show_and_describe(runner: TextRunner) -> None:
    """SHOW and DESCRIBE answer from our catalog in Spark's columns."""
    assert runner.run("show schemas like 'd*'").fetched.rows == (("demo",),)
    assert runner.run("show tables in default").fetched.rows == (
        ("default", "keyed", False),
        ("default", "seen", False),
    )
    assert runner.run("show views").fetched.rows == (("default", "seen", False),)
    assert runner.run("describe keyed").fetched.rows[1] == ("v", "decimal(5,2)", None)
    assert ("Primary Key", "id", "") in runner.run("describe table extended keyed").fetched.rows
    assert runner.run("show columns in plain").fetched.rows == (("id",), ("name",))


def test_exact_values(runner: TextRunner) -> None:
    """Fetched values are exact Python values: decimals, big integers, microseconds with and without zone."""
    row = runner.run(
        "select 12345678901234567890.12BD, 9007199254740993L, timestamp'2026-01-01 00:00:00.000001', "
        "timestamp_ntz'2026-01-01 00:00:00.000001', X'00ff', null, array(1, 2), named_struct('a', 1)"
    ).fetched.rows[0]
    assert [str(value) for value in row[:4]] == [
        "12345678901234567890.12", "9007199254740993", "2026-01-01 00:00:00.000001+00:00", "2026-01-01 00:00:00.000001"]  # fmt: skip
    plain = runner.run(
        "select timestamp'2026-01-01 00:00:00.000001', timestamp_ntz'2026-01-01', X'00ff', null"
    ).fetched.rows[0]
    assert [str(value) for value in plain] == [
        "2026-01-01 00:00:00.000001+00:00",
        "2026-01-01 00:00:00",
        "b'\\x00\\xff'",
        "None",
    ]
    assert runner.run("select id from keyed", limit=2).fetched.rows.__len__() == 2
