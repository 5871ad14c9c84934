"""System tables in SQL, under the names that Paimon gives them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableVersion
from tablestore_engine.errors import NotFound, TablestoreError
from tablestore_engine.spark import hidden_tables


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """demo.orders with three snapshots: two keys, one of them updated, the other one deleted; a tag of the first."""
    with Engine(str(tmp_path_factory.mktemp("warehouse"))) as made:
        made.sql("create schema demo")
        made.sql("create table demo.orders (id int not null, v string, primary key (id))")
        orders = made.table("demo.orders")
        orders.upsert(_rows([1, 2], ["a", "b"]))
        orders.upsert(_rows([2], ["c"]))
        orders.delete("id = 1")
        orders.tag("first", 1)
        yield made


def _rows(ids: list[int], values: list[str]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "v": values})


def found(engine: Engine, text: str) -> list[tuple[object, ...]]:
    """The rows of a query."""
    return [tuple(row) for row in engine.sql(text).rows]


@pytest.mark.parametrize("literal_rows", [0, hidden_tables.LITERAL_ROWS])
def test_every_system_table_has_the_rows_of_the_python_api(
    engine: Engine, literal_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All columns, in their order, with NULLs, arrays and times: as a literal, and as a Parquet file."""
    monkeypatch.setattr(hidden_tables, "LITERAL_ROWS", literal_rows)
    orders = engine.table("demo.orders")
    for name in orders.system_tables:
        expected = orders.system_table(name)
        frame = engine.query(f"select * from demo.`orders${name}`")
        assert frame.columns == expected.column_names, name
        rows = [tuple(row.values()) for row in expected.to_pylist()]
        assert sorted(map(repr, map(tuple, frame.collect()))) == sorted(map(repr, rows)), name


def test_names_work_as_those_of_tables_do(engine: Engine) -> None:
    """With the catalog, an alias, the name as a qualifier, in joins, below a stored view, in any case."""
    text = "select `orders$snapshots`.snapshot_id from spark_catalog.demo.`orders$snapshots` order by 1"
    assert found(engine, text) == [(1,), (2,), (3,)]
    joined = """select s.snapshot_id, c.schema_id from demo.`orders$snapshots` s
                join demo.`Orders$Schemas` c on s.schema_id = c.schema_id where s.snapshot_id > 2"""
    assert found(engine, joined) == [(3, 0)]
    engine.sql("create view demo.history as select count(*) as n from demo.`orders$snapshots`")
    assert found(engine, "select n from demo.history") == [(3,)]
    assert (
        found(engine, "select id from demo.orders where id in (select snapshot_id from demo.`orders$tags`)")
        == []
    )


def test_a_past_state_is_shown_by_clause_name_and_override(engine: Engine) -> None:
    """Of a snapshot, a tag, and a range of changes."""
    counted = "select sum(record_count) from {}"
    first = [(2,)]
    assert found(engine, counted.format("demo.`orders$files` version as of 1")) == first
    assert found(engine, counted.format("demo__at_tag_first.`orders$files`")) == first
    pinned = {"demo.orders": TableVersion(snapshot=1)}
    assert [
        tuple(one) for one in engine.query(counted.format("demo.`orders$files`"), versions=pinned).collect()
    ] == first
    changes = "select rowkind, id, v from demo__changes_1_to_3.`orders$audit_log` order by 2, 1 desc"
    assert found(engine, changes) == [("-D", 1, "a"), ("-U", 2, "b"), ("+U", 2, "c")]


def test_the_next_statement_sees_the_next_snapshot(engine: Engine) -> None:
    """Rows are looked up for each statement, not once for a session."""
    engine.sql("create table demo.moving (id int)")
    text = "select count(*) from demo.`moving$snapshots`"
    before = found(engine, text)[0][0]
    engine.table("demo.moving").append(pa.table({"id": pa.array([1], pa.int32())}))
    assert found(engine, text)[0][0] == before + 1


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("demo.`orders$nothing`", "TS1490"),
        ("demo.`nothing$files`", "TS1515"),
        ("demo__changes_1_to_3.`orders$files`", "TS1345"),
        ("demo__changes_1_to_3.`orders$binlog`", "TS2171"),
    ],
)
def test_other_names_are_refused(engine: Engine, name: str, code: str) -> None:
    """A system table that does not exist, one of a table that does not, and ranges that have no such table."""
    with pytest.raises(TablestoreError) as refused:
        engine.sql(f"select * from {name}")
    assert refused.value.code == code
    if code == "TS1490":
        assert isinstance(refused.value, NotFound)
        assert "audit_log, binlog, branches" in refused.value.why


def test_a_branch_is_read_by_its_name(engine: Engine) -> None:
    """Its rows, its past states and its system tables; one that is not there is refused."""
    orders = engine.table("demo.orders")
    orders.create_branch("dev-1", tag="first")
    orders.branch("dev-1").upsert(_rows([7], ["z"]))
    assert found(engine, "select id, v from demo.`orders$branch_dev-1` order by id") == [
        (1, "a"),
        (2, "b"),
        (7, "z"),
    ]
    joined = "select b.id from demo.`orders$branch_dev-1` b join demo.orders o on b.id = o.id"
    assert found(engine, joined) == [(2,)]
    assert found(engine, "select id from demo.`orders$branch_dev-1` version as of 1 order by id") == [
        (1,),
        (2,),
    ]
    assert found(engine, "select count(*) from demo.`orders$branch_dev-1$snapshots`") == [(2,)]
    assert found(engine, "select count(*) from demo.`orders$branch_dev-1$audit_log`") == [(3,)]
    assert found(engine, "select branch_name from demo.`orders$branches`") == [("dev-1",)]
    assert orders.branch("dev-1").scan().to_spark().count() == 3
    with pytest.raises(TablestoreError, match="TS1346"):
        engine.sql("select * from demo.`orders$branch_nothing`")
