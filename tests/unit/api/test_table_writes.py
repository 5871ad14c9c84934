"""append, upsert, overwrite and delete: what each does, which rows they take, and what is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablestore_engine.api import Engine, FixData, FixRequest, Table, TableSpec, TablestoreError, WriteSpec
from tests.unit.store.table_world import acting

SCHEMA = pa.schema({"id": pa.int64(), "part": pa.string(), "n": pa.int32()})
ROWS = [{"id": 1, "part": "x", "n": 10}, {"id": 2, "part": "y", "n": None}]
_ARROW = pa.Table.from_pylist(ROWS, SCHEMA)
_KINDS: dict[str, Callable[[], object]] = {
    "table": lambda: _ARROW,
    "batch": lambda: _ARROW.to_batches()[0],
    "reader": _ARROW.to_reader,
    "pandas": lambda: pd.DataFrame(ROWS).astype({"n": "Int32"}),
    "polars": lambda: pl.DataFrame(ROWS, schema_overrides={"n": pl.Int32}),
    "lazy polars": lambda: pl.DataFrame(ROWS, schema_overrides={"n": pl.Int32}).lazy(),
    "dicts": lambda: ROWS,
    "capsule": lambda: _Capsule(),  # noqa: PLW0108 - it is defined below
    "duckdb": lambda: duckdb.from_arrow(_ARROW),
}


class _Capsule:
    """An object that only has the Arrow PyCapsule stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _ARROW.__arrow_c_stream__(requested_schema)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A new warehouse."""
    return Engine(str(tmp_path))


@pytest.fixture
def keyed(engine: Engine) -> Table:
    """Without rows."""
    return engine.create_table("demo.keyed", SCHEMA, primary_key=["id", "part"], partition_by="part")


@pytest.fixture
def plain(engine: Engine) -> Table:
    """Append-only, without rows."""
    return engine.create_table("demo.plain", SCHEMA, partition_by="part")


def _ids(table: Table) -> list[int]:
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("kind", _KINDS)
def test_write_each_kind_of_rows_gives_the_same_table(
    engine: Engine, keyed: Table, plain: Table, kind: str
) -> None:
    """Also as the source of a schema, and as keys to delete."""
    plain.append(_KINDS[kind]())
    keyed.upsert(_KINDS[kind]())
    for table in (plain, keyed):
        assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == ROWS
    assert keyed.delete(_KINDS[kind]()).deleted == 2
    keyed.overwrite(_KINDS[kind]())
    assert _ids(keyed) == [1, 2]
    made = engine.create_table("demo.made", _KINDS[kind](), primary_key="id")
    assert made.schema.field_names == ("id", "part", "n")
    assert made.scan().to_arrow().num_rows == 0


def test_write_a_scan_copies_rows(keyed: Table, plain: Table) -> None:
    """A Scan is a stream of Arrow rows, for the engine as well."""
    plain.append(ROWS)
    assert keyed.upsert(plain.scan(filter="id = 2")).inserted == 1
    assert _ids(keyed) == [2]


def test_upsert_replaces_rows_of_a_key(keyed: Table) -> None:
    """One commit with an insert and an update."""
    keyed.upsert(ROWS)
    report = keyed.upsert([ROWS[0] | {"n": 11}, {"id": 3, "part": "x", "n": 1}])
    assert (report.inserted, report.updated, report.snapshot_id) == (1, 1, 2)


def test_overwrite_all_rows_of_partitions_and_of_a_filter(keyed: Table, plain: Table) -> None:
    """What the call names is replaced, and nothing else."""
    for table in (keyed, plain):
        table.overwrite(ROWS)
        table.overwrite([{"id": 5, "part": "x", "n": 1}], partitions=True)
        assert _ids(table) == [2, 5]
        table.overwrite([{"id": 6, "part": "z", "n": 1}], filter="n = 1")
        assert _ids(table) == [2, 6]
        table.overwrite([{"id": 7, "part": "z", "n": 1}], filter=pc.field("n").is_null())
        assert _ids(table) == [6, 7]
        table.overwrite([], filter="id = 6")
        assert _ids(table) == [7]
        table.overwrite([])
        assert _ids(table) == []


def test_delete_by_filter_and_by_key_is_one_commit_with_its_changelog(keyed: Table) -> None:
    """The changelog has the rows that were deleted; nothing to delete is no commit."""
    keyed.upsert(ROWS)
    assert keyed.delete("n is null").deleted == 1
    assert keyed.changes(1).select(["id", "_row_kind"]).to_pylist() == [{"id": 2, "_row_kind": "-D"}]
    assert keyed.delete("id > 5").is_empty
    assert keyed.delete([]).is_empty
    assert keyed.delete([{"ID": 1, "part": "y"}]).is_empty  # another key
    assert keyed.delete([{"ID": 1, "part": "x"}]).deleted == 1


def test_delete_of_a_table_with_a_sequence_field_deletes(engine: Engine) -> None:
    """A key has no value of the sequence field, and is not late because of it."""
    table = engine.create_table("demo.s", SCHEMA, primary_key="id", options={"sequence.field": "n"})
    table.upsert([{"id": 1, "part": "x", "n": 10}])
    assert table.delete([{"id": 1}]).deleted == 1


@pytest.mark.parametrize("key", ["id", ()])
def test_delete_while_another_writer_commits_chooses_rows_again(
    tmp_path: Path, key: str | tuple[str, ...]
) -> None:
    """A row that fits the filter and is committed meanwhile is deleted too: rows are chosen on the newest snapshot."""
    first = Engine(str(tmp_path)).create_table("demo.t", SCHEMA, primary_key=key)
    write = first.upsert if key else first.append
    write(ROWS)
    late = acting(
        "write.data_files", lambda: write([{"id": 3, "part": "x", "n": 12}, {"id": 4, "part": "x", "n": 1}])
    )
    assert Engine(str(tmp_path), runtime=late).table("demo.t").delete("n >= 10").deleted == 2
    assert _ids(first) == [2, 4]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda keyed, _: keyed.append(ROWS), "TS1568"),
        (lambda _, plain: plain.upsert(ROWS), "TS1568"),
        (lambda _, plain: plain.delete([{"id": 1}]), "TS1568"),
        (lambda keyed, _: keyed.delete([{"id": 1}]), "TS1568"),
        (lambda keyed, _: keyed.overwrite(ROWS, filter="id = 1", partitions=True), "TS1568"),
        (lambda keyed, _: keyed.overwrite(ROWS, filter=5), "TS1569"),
        (lambda keyed, _: keyed.delete("id ="), "TS1564"),
        (lambda keyed, _: keyed.delete("id = 'x'"), "TS1565"),
        (lambda keyed, _: keyed.delete(pc.field("zz") == 1), "TS1566"),
        (lambda keyed, _: keyed.delete(5), "TS1023"),
        (lambda keyed, _: keyed.upsert(5), "TS1023"),
        (lambda keyed, _: keyed.upsert([1, 2]), "TS1607"),
        (lambda keyed, _: keyed.upsert([{"id": 1}, {"id": 2, "n": 5}]), "TS1607"),
        (lambda keyed, _: keyed.upsert([{"id": 1}, {"id": "x"}]), "TS1607"),
        (lambda keyed, _: keyed.upsert(pa.array([1, 2]).__class__), "TS1023"),
        (lambda keyed, _: keyed.upsert(pa.chunked_array([[1, 2]])), "TS1607"),
    ],
)
def test_write_that_means_nothing_is_refused(
    keyed: Table, plain: Table, call: Callable[[Table, Table], object], code: str
) -> None:
    """With a code, and nothing is committed."""
    with pytest.raises(TablestoreError, match=code):
        call(keyed, plain)
    assert (keyed.latest_snapshot_id(), plain.latest_snapshot_id()) == (None, None)


def test_rows_of_another_kind_are_refused_in_words_of_the_call(keyed: Table) -> None:
    """TS1023 of a delete speaks of keys and filters, of a write about rows."""
    with pytest.raises(FixRequest, match="TS1023 keys of rows to delete cannot be taken from int") as caught:
        keyed.delete(10)
    assert "a filter as SQL text" in caught.value.fix
    with pytest.raises(FixRequest, match="TS1023 rows cannot be taken from int") as caught:
        keyed.upsert(10)
    assert caught.value.fix.startswith("give SQL text, ")


def test_create_table_existing_name_is_refused_kept_or_replaced(engine: Engine, keyed: Table) -> None:
    """`keep` compares columns, keys, partitions and the options that are named; `replace` keeps the history."""
    keyed.upsert(ROWS)
    key, names = ["id", "part"], "demo.keyed"
    with pytest.raises(FixRequest, match="TS1415"):
        engine.create_table(names, SCHEMA, primary_key=key, partition_by="part")
    kept = engine.create_table(names, SCHEMA, primary_key=key, partition_by="part", if_exists="keep")
    assert _ids(kept) == [1, 2]
    for schema, other in (
        (SCHEMA, {"primary_key": "id", "partition_by": ()}),
        (SCHEMA.append(pa.field("more", pa.int8())), {}),
        (SCHEMA.set(2, pa.field("n", pa.int64())), {}),
        (SCHEMA, {"options": {"bucket": 7}}),
    ):
        with pytest.raises(FixRequest, match="TS1580"):
            engine.create_table(
                names, schema, **{"primary_key": key, "partition_by": "part"} | other, if_exists="keep"
            )
    with pytest.raises(FixRequest, match="TS1580"):
        engine.create_table(names, SCHEMA, if_exists="append")  # type: ignore[arg-type]
    schema = SCHEMA.append(pa.field("more", pa.int8()))
    replaced = engine.create_table(names, schema, primary_key=key, partition_by="part", if_exists="replace")
    assert (replaced.scan().to_arrow().num_rows, replaced.scan().schema.names) == (0, schema.names)
    assert replaced.scan(snapshot=1).to_arrow().num_rows == 2


_NANOS = pa.timestamp("ns")
_REFUSED: dict[str, tuple[object, dict[str, object], str]] = {
    "a struct of mixed units": (
        pa.schema({"s": pa.list_(pa.struct({"at": _NANOS, "by": pa.timestamp("us")}))}),
        {},
        "TS1127",
    ),
    "rows with nanoseconds": (pa.table({"at": pa.array([1001], _NANOS)}), {}, "TS1580"),
    "pandas rows with nanoseconds": (pd.DataFrame({"at": [pd.Timestamp(1001)]}), {}, "TS1580"),
    "a key that is no column": (SCHEMA, {"primary_key": "x"}, "TS1110"),
    "an unknown option": (SCHEMA, {"options": {"buckt": 1}}, "TS1006"),
    "two columns of one name": (pa.schema([("a", pa.int8()), ("A", pa.int8())]), {}, "TS1024"),
    "a feature that is not written": (SCHEMA, {"options": {"row-tracking.enabled": "true"}}, "TS1127"),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_create_table_refused_leaves_nothing(tmp_path: Path, name: str) -> None:
    """No table, and no database of the name: the warehouse is as it was."""
    schema, arguments, code = _REFUSED[name]
    engine = Engine(str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TablestoreError) as caught:
        engine.create_table("new.t", schema, **arguments)  # type: ignore[arg-type]
    assert caught.value.code == code
    assert sorted(tmp_path.rglob("*")) == before
    if "nanoseconds" in name:
        assert "BIGINT" in caught.value.fix


def test_write_refused_schema_leaves_no_database(tmp_path: Path) -> None:
    """The first write of a table with nanoseconds says what to do, and the warehouse is as it was."""
    engine = Engine(str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TablestoreError, match="cast it to microseconds"):
        engine.write("new.t", pa.table({"at": pa.array([1001], _NANOS)}), WriteSpec())
    assert sorted(tmp_path.rglob("*")) == before


def test_create_table_of_rows_with_whole_microseconds_takes_them(engine: Engine) -> None:
    """pandas has nanoseconds as its type for times of any unit."""
    rows = pa.table({"at": pa.array([1000], _NANOS)})
    table = engine.create_table("demo.t", rows)
    table.append(rows)
    assert table.scan().to_arrow().column("at").cast(pa.int64()).to_pylist() == [1]


@pytest.mark.parametrize("schema", [[], pa.schema([]), pa.table({})])
def test_create_table_without_columns_is_refused(engine: Engine, schema: object) -> None:
    """TS1580, and no table is there."""
    with pytest.raises(FixRequest, match="TS1580"):
        engine.create_table("demo.t", schema)
    assert engine.find_table("demo.t") is None


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_times_finer_than_a_millisecond_are_refused_by_all_writes_alike(engine: Engine, unit: str) -> None:
    """A table made of such rows could not take them; whole milliseconds pass, whatever their type."""

    def rows(*micros: int) -> pa.Table:
        counts = [one * (1000 if unit == "ns" else 1) for one in micros]
        return pa.table({"id": range(len(micros)), "at": pa.array(counts, pa.time64(unit))})

    fine = rows(3_600_000_000, 3_600_000_001)
    writes: list[Callable[[], object]] = [
        lambda: engine.create_table("demo.clock", fine, primary_key="id"),
        lambda: engine.write("demo.clock", fine, WriteSpec(table=TableSpec(primary_key=("id",)))),
    ]
    for write in writes:
        with pytest.raises(FixData, match=r"'at'.*\n.*01:00:00\.000001") as refused:
            write()
        assert refused.value.code == "TS1607"
        assert not engine.relations("demo")
    table = engine.create_table("demo.clock", rows(3_600_001_000), primary_key="id")
    with pytest.raises(FixData, match="TS1607"):
        table.upsert(fine)
    table.upsert(rows(3_600_001_000))
    assert table.scan().to_polars()["at"].to_list() == [dt.time(1, 0, 0, 1000)]


def test_create_table_takes_not_null_and_options_of_python(engine: Engine) -> None:
    """NOT NULL comes from the schema; numbers and booleans become the texts of options."""
    schema = pa.schema([("id", pa.int64()), pa.field("day", pa.date32(), nullable=False)])
    table = engine.create_table("demo.t", schema, primary_key="id", options={"bucket": 2, "write-only": True})
    assert {key: table.schema.options[key] for key in ("bucket", "write-only")} == {
        "bucket": "2",
        "write-only": "true",
    }
    with pytest.raises(FixData):
        table.upsert([{"id": 1, "day": None}])
    assert table.upsert([{"id": 1, "day": dt.date(2026, 1, 31)}]).inserted == 1
