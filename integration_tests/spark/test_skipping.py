"""Queries open only files that can match, and answer as if they had opened all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.errors import FixData, Unsupported
from tablestore_engine.spark import deletion_bitmap_literal, plan_pruning, view_sql
from tablestore_engine.spark.key_reads import KeyReads
from tablestore_engine.spark.plan_pruning import PlanPruner
from tests.doses import cases, is_nightly

DAYS = [date(2024, 1, 1) + timedelta(days=i) for i in range(12)]
TABLE = "skipping.rows"


def _rows(keys: list[int], mark: float) -> pa.Table:
    return pa.table(
        {
            "day": pa.array([DAYS[k // 20] for k in keys], pa.date32()),
            "id": pa.array(keys, pa.int64()),
            "name": [None if k % 7 == 0 else f"name {k:04d} of a length that is cut" for k in keys],
            "x": pa.array([float("nan") if k % 11 == 0 else k * mark for k in keys], pa.float64()),
            "amount": pa.array([Decimal(k) / 4 for k in keys], pa.decimal128(9, 2)),
            "at": pa.array([datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=k) for k in keys]),
        }
    )


@pytest.fixture(scope="module")
def engine(spark: SparkSession, warehouse: str) -> Iterator[Engine]:
    """Twelve partitions of two buckets, files of several row groups; some keys written again, some deleted, in one
    partition all alive.
    """
    options = {"bucket": "2", "parquet.row-group-rows": "3"}
    with Engine(warehouse) as engine:
        spec = WriteSpec(
            table=TableSpec(primary_key=("day", "id"), partition_by=("day",), options=options),
            mode=WriteMode.UPSERT,
        )
        engine.write(TABLE, _rows(list(range(240)), 1.0), spec)
        engine.write(TABLE, _rows(list(range(0, 200, 3)), -2.0), spec)
        engine.sql(f"delete from {TABLE} where id between 30 and 33")
        yield engine


def _names(frame: DataFrame) -> set[str]:
    return {path.rpartition("/")[2] for path in frame.inputFiles() if "/words/" not in path}


def _answer(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def _without_pruning(engine: Engine, text: str, patch: pytest.MonkeyPatch) -> list[str]:
    with patch.context() as inside:
        inside.setattr(PlanPruner, "pruned", lambda _, frame: frame)
        return _answer(engine.query(text))


def test_a_partition_and_a_key_open_their_files_only(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a plan are those that the manifest leaves: of the partition, of the key's bucket and range."""
    monkeypatch.setattr(KeyReads, "answered", lambda _, frame, __: frame)  # it would open none
    plan = engine.table(TABLE).scan().plan()
    third = {f.meta.file_name for f in plan.files if f.partition == (DAYS[2],)}
    assert third
    assert _names(engine.query(f"select * from {TABLE} where day = date '2024-01-03'")) == third
    assert _names(engine.query(f"select count(*) from {TABLE} where day > '2024-01-12'")) == set()
    one = engine.query(f"select * from {TABLE} where day = date '2024-01-03' and id = 45")
    assert [row.id for row in one.collect()] == [45]
    buckets = {f.bucket for f in plan.files if f.meta.file_name in _names(one)}
    assert len(buckets) == 1
    assert _names(one) < third
    last = engine.query(f"select * from {TABLE} where day = date '2024-01-12' and id > 0")
    assert "getbit" not in last._jdf.queryExecution().optimizedPlan().toString(), (
        "no file of it has dead rows"
    )
    assert last.count() == 20


_VALUES = {
    "day": ["date '2024-01-04'", "'2024-01-09'", "current_date()"],
    "id": ["45", "0", "199", "31", "cast('77' as bigint)", "46L", "44.5"],
    "name": ["'name 0045 of a length that is cut'", "'name 01'", "''", "null"],
    "x": ["-90.0D", "45.0D", "cast('nan' as double)", "0.0D"],
    "amount": ["11.25", "cast(50 as decimal(9,2))", "7"],
    "at": ["timestamp '2024-01-02 21:00:00'", "timestamp '2024-01-05 00:00:00+02:00'", "now()"],
}


def _condition(chance: random.Random, depth: int = 0) -> str:
    kind = chance.randrange(9) if depth < 3 else chance.randrange(5)
    column = chance.choice(list(_VALUES))
    value = chance.choice(_VALUES[column])
    if kind < 3:
        return f"{column} {chance.choice(['=', '<', '<=', '>', '>=', '<>', '<=>'])} {value}"
    if kind == 3:
        return f"{column} is {chance.choice(['', 'not '])}null"
    if kind == 4:
        return chance.choice(
            [f"{column} in ({', '.join(_VALUES[column])})", "name like 'name 00%'", "id % 2 = 0",
             "upper(name) > 'NAME 01'",
             f"id in ({', '.join(map(str, range(0, 60, 4)))})", "id not in (1, 2, 45)", "rand() >= 0"]
        )  # fmt: skip
    if kind == 5:
        return f"not ({_condition(chance, depth + 1)})"
    word = chance.choice(["and", "or"])
    return f"({_condition(chance, depth + 1)} {word} {_condition(chance, depth + 1)})"


@pytest.mark.nightly
def test_random_conditions_answer_as_all_files_do(engine: Engine) -> None:
    """NULL, NaN, cut texts, decimals, times, casts, functions, OR, NOT, IN: the rows are those of an unpruned frame."""
    whole, chance = engine.table(TABLE).scan().to_spark(), random.Random(7)
    everything, skipping = len(_names(whole)), 0
    for _ in range(40):
        text = _condition(chance)
        frame = engine.query(f"select id, x from {TABLE} where {text}")
        skipping += len(_names(frame)) < everything
        assert _answer(frame) == _answer(whole.where(text).select("id", "x")), text
    assert skipping >= 8


_LEFT = f"{TABLE} a left join {TABLE} b on a.id = b.id and b.day = '2024-01-02'"
_QUERIES = [
    f"select a.id, b.id other from {_LEFT} where a.id < 30",
    f"select a.id, b.id other from {TABLE} a full join (select * from {TABLE} where id = 3) b on a.id = b.id",
    f"select id from {TABLE} where id = 5 union all select id from {TABLE} where id = 150",
    (
        f"with c as (select * from {TABLE}) select id from c where id = 5 union all"
        " select count(*) from c where day = '2024-01-02'"
    ),
    f"select id from {TABLE} where id = (select max(id) from {TABLE} where day = '2024-01-02')",
    f"select id from {TABLE} where id in (select id + 1 from {TABLE} where id < 12) and day < '2024-01-03'",
    f"select id from {TABLE} a where exists (select 1 from {TABLE} b where b.id = a.id + 1 and b.day = '2024-01-05')",
    f"select day, count(*), sum(amount) from {TABLE} where id > 100 group by day having count(*) > 3",
    f"select * from (select id, row_number() over (order by id desc) r from {TABLE}) where id = 7",
    f"select * from (select id from {TABLE} order by id limit 3) where id = 239",
    "select id, at from skipping.late where id between 20 and 60",
    f"select id, x from {TABLE} version as of 1 where id = 30",
    f"select count(*) from {TABLE} where at <= now() and day <= current_date() and id = 44",
]  # fmt: skip


@pytest.mark.parametrize("text", cases(_QUERIES, 3))
def test_whole_queries_answer_as_all_files_do(
    engine: Engine, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Joins, a table read twice, CTEs, subqueries, windows, limits, views, past states: fewer files, the same rows."""
    if "late" in text:
        engine.sql(f"create or replace view skipping.late as select * from {TABLE} where day > '2024-01-02'")
    assert _answer(engine.query(text)) == _without_pruning(engine, text, monkeypatch)


def test_changed_columns_are_judged_by_what_the_file_has(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renamed, widened and added columns: old files are left out only where their own statistics say so."""
    name = "skipping.evolved"
    rows = pa.table(
        {"id": pa.array(range(32), pa.int64()), "a": pa.array(range(32), pa.int32()), "b": [1.5] * 32}
    )
    engine.write(name, rows, WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "32"})))
    engine.sql(f"alter table {name} rename column a to c")
    engine.sql(f"alter table {name} alter column c type bigint")
    engine.sql(f"alter table {name} drop column b")
    engine.sql(f"alter table {name} add columns (b double, a int)")
    engine.sql(f"insert into {name} (id, c, b, a) values (3, 103, 2.5, 9), (40, 5, null, 7)")
    conditions = ["c = 5", "c > 30", "a = 9", "a is null and id < 4", "b = 1.5", "b is not null", "c + 0 = 7"]
    for text in conditions:
        query = f"select * from {name} where {text}"
        assert _answer(engine.query(query)) == _without_pruning(engine, query, monkeypatch), text
    assert len(_names(engine.query(f"select * from {name} where c = 5"))) < 26


def test_statements_change_the_same_rows(engine: Engine) -> None:
    """UPDATE, DELETE and MERGE read through pruned plans and change all rows that they name, no other ones."""
    name = "skipping.changed"
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "10"}))
    engine.write(name, pa.table({"id": pa.array(range(100), pa.int64()), "v": [0] * 100}), spec)
    engine.sql(f"update {name} set v = 1 where id in (4, 50)")
    engine.sql(f"delete from {name} where id = 7 or id > 97")
    engine.sql(
        f"merge into {name} t using (select 50 as id union all select 200) s on t.id = s.id and t.v = 1"
        " when matched then update set v = 2 when not matched then insert (id, v) values (s.id, 3)"
    )
    rows = {row.id: row.v for row in engine.query(f"select * from {name}").collect()}
    expected = dict.fromkeys(set(range(98)) - {7}, 0) | {4: 1, 50: 2, 200: 3}
    assert rows == expected


def test_the_time_of_a_frame_is_the_time_of_its_files(engine: Engine) -> None:
    """A frame that was pruned by now() keeps that time however late it runs."""
    frame = engine.query(f"select now() as moment from {TABLE} where id = 44 and at < now()")
    first = frame.collect()[0].moment
    assert frame.limit(1).collect()[0].moment == first


def _shapes(engine: Engine, name: str) -> list[str]:
    """Files whose rows end just before, at and after a word's end, more than a word of files; what must be left."""
    sizes = [1, 63, 64, 65, 128, 129, *[2] * 64]
    parts = [part for part, size in enumerate(sizes) for _ in range(size)]
    ids = [at for size in sizes for at in range(size)]
    rows = pa.table({"part": pa.array(parts, pa.int32()), "id": pa.array(ids, pa.int64())})
    spec = TableSpec(primary_key=("part", "id"), partition_by=("part",), options={"bucket": "1"})
    engine.write(name, rows, WriteSpec(table=spec))
    engine.sql(f"delete from {name} where id in (0, 62, 63, 64, 127, 128) and part <> 40 and part <> 41")
    dead = {0, 62, 63, 64, 127, 128}
    return sorted(f"{p} {i}" for p, i in zip(parts, ids, strict=True) if p in (40, 41) or i not in dead)


def test_words_of_dead_rows_are_a_value_of_the_plan(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """No job of its own reads them, in queries, subqueries and scans; with too many of them the subquery does. No row
    gets a struct for its number.
    """
    name = "skipping.shapes"
    left = _shapes(engine, name)

    def check(frame: DataFrame, *, subquery: bool) -> None:
        plan = frame._jdf.queryExecution().optimizedPlan().toString()
        assert ("scalar-subquery" in plan) == subquery
        assert "named_struct" not in frame._jdf.queryExecution().executedPlan().toString()
        assert sorted(f"{row.part} {row.id}" for row in frame.collect()) == left

    check(engine.query(f"select * from {name}"), subquery=False)
    check(
        engine.query(f"select * from {name} where (part, id) in (select part, id from {name})"),
        subquery=False,
    )
    check(engine.table(name).scan().to_spark(), subquery=False)
    monkeypatch.setattr(deletion_bitmap_literal, "MAX_WORDS", 3)
    engine.sql(f"insert into {name} values (0, 7)")  # another state: its words are not kept yet
    left = sorted([*left, "0 7"])
    check(engine.query(f"select * from {name}"), subquery=True)
    few = engine.query(f"select id from {name} where part = 3")
    assert "scalar-subquery" not in few._jdf.queryExecution().optimizedPlan().toString()
    assert sorted(row.id for row in few.collect()) == [*range(1, 62)]


@pytest.mark.parametrize("words_max", cases([deletion_bitmap_literal.MAX_WORDS, 12, 3], 2))
@pytest.mark.parametrize("paths_max", cases([plan_pruning._PATHS_MAX, 2], 1))
def test_files_that_are_left_find_their_words(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, words_max: int, paths_max: int
) -> None:
    """One by one or as a folder, with the words of the table, with their own, or by the subquery: the same rows."""
    name = f"skipping.words_{words_max}_{paths_max}"
    left = _shapes(engine, name)
    monkeypatch.setattr(deletion_bitmap_literal, "MAX_WORDS", words_max)
    monkeypatch.setattr(plan_pruning, "_PATHS_MAX", paths_max)
    for parts in ((3,), (1, 5, 9, 40), (*range(2, 10),)):
        text = ", ".join(str(part) for part in parts)
        frame = engine.query(f"select part, id from {name} where part in ({text})")
        assert len(_names(frame)) == len(parts)
        expected = [one for one in left if int(one.split()[0]) in parts]
        assert sorted(f"{row.part} {row.id}" for row in frame.collect()) == expected


@pytest.mark.parametrize("name", ["__TableStore_Word", "_metadata"])
def test_a_column_with_the_name_of_ours(engine: Engine, name: str) -> None:
    """The table's own column of that name, in whatever case, is read from its files."""
    rows = pa.table({"id": [1, 2, 3], name: [7, 8, 9]})
    engine.write(f"skipping.named{name}", rows, WriteSpec(TableSpec(primary_key=("id",))))
    engine.sql(f"delete from skipping.named{name} where id = 2")
    found = engine.query(f"select id, {name.lower()} from skipping.named{name}").collect()
    assert sorted(tuple(row) for row in found) == [(1, 7), (3, 9)]


@pytest.mark.parametrize("key", [("id",), ()])
def test_a_column_that_spark_fills_with_row_numbers_is_refused(engine: Engine, key: tuple[str, ...]) -> None:
    """Its values would be row numbers: they are never shown, also under a later name. Other columns are, with and
    without deleted rows.
    """
    name = f"skipping.numbers{len(key)}"
    rows = pa.table({"id": [1, 2, 3], "_TMP_metadata_row_index": [7, 8, 9]})
    engine.write(name, rows, WriteSpec(TableSpec(primary_key=key)))
    for left in ([1, 2, 3], [1, 3]):
        assert engine.sql(f"select id from {name} order by id").rows == tuple((one,) for one in left)
        for columns in ("*", "_tmp_metadata_row_index"):
            with pytest.raises(Unsupported, match="TS1575 column _TMP_metadata_row_index"):
                engine.sql(f"select {columns} from {name} where id + 0 > 0")
        engine.table(name).delete("id = 2")
    assert engine.table(name).scan().to_arrow().column(1).to_pylist() == [7, 9]
    engine.sql(f"alter table {name} rename column _TMP_metadata_row_index to b")
    with pytest.raises(Unsupported, match="TS1575 column b"):
        engine.sql(f"select b from {name} where id + 0 < 4")


def test_a_text_under_the_name_of_row_numbers_is_never_read_as_one(engine: Engine) -> None:
    """Spark's reader fails there once a row is deleted; before, the other columns are read."""
    rows = pa.table({"id": [1, 2], "_tmp_metadata_row_index": ["a", "b"]})
    engine.write("skipping.texts", rows, WriteSpec(TableSpec(primary_key=("id",))))
    assert engine.sql("select id from skipping.texts order by id").rows == ((1,), (2,))
    engine.table("skipping.texts").delete("id = 2")
    with pytest.raises(FixData, match="TS1560"):
        engine.sql("select id from skipping.texts order by id")


def test_reader_without_row_numbers_is_an_error(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that leaves the column of row numbers empty, as one of a plug-in may, never hides the rows."""
    monkeypatch.setattr(view_sql, "_ROW_COLUMN", "numbers_that_nobody_gives")
    _shapes(engine, "skipping.unnumbered")
    for text in (
        "select * from skipping.unnumbered",
        "select count(*) from skipping.unnumbered where id > 3",
    ):
        with pytest.raises(Unsupported, match="TS1589"):
            engine.sql(text)


def test_a_query_that_asks_nothing_is_not_optimized_twice(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads of everything and joins by columns alone: their conditions are not even looked for."""
    asked: list[object] = []
    monkeypatch.setattr(plan_pruning, "read_conditions", lambda plan, _: asked.append(plan) or [])
    engine.query(f"select count(*), sum(amount) from {TABLE}")
    engine.query(
        f"select a.id from {TABLE} a join {TABLE} b on a.id = b.id and a.day = b.day order by 1 limit 3"
    )
    engine.query(f"select id, (select max(id) from {TABLE} where id < 50) from {TABLE}")
    assert not asked
    engine.query(f"select * from {TABLE} a join {TABLE} b on a.id = b.id and b.day = '2024-01-03'")
    engine.query(f"select day, count(*) from {TABLE} group by day having day > '2024-01-03'")
    assert len(asked) == 2
    monkeypatch.setattr(plan_pruning, "_FILES_WORTH", 10_000)
    engine.query(f"select * from {TABLE} where day = '2024-01-03'")
    assert len(asked) == 2  # few files are not worth it


def test_a_line_break_in_a_literal_moves_no_node(engine: Engine) -> None:
    """Nodes are fetched by the line that they stand in: where lines are more than nodes, nothing is changed."""
    text = f"select id from {TABLE} where (name <> 'a\\nFilter b' or name is null) and id < 3"
    assert _answer(engine.query(text)) == _answer(engine.query(f"select id from {TABLE} where id < 3"))


@pytest.mark.parametrize("count", [*(pytest.param(n, marks=pytest.mark.nightly) for n in (3, 300)), 30])
def test_lists_of_every_length_and_type(engine: Engine, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """IN of few values and of many, which Spark keeps as a set, with NULL and without, of numbers, texts and times."""
    lists = {
        "id": [str(k) for k in range(0, count, 2)],
        "name": [f"'name {k:04d} of a length that is cut'" for k in range(count)] + ["'null'"],
        "day": [f"date '2024-01-03' + {k}" for k in range(2)]
        + [f"date '1999-01-01' + {k}" for k in range(count)],
        "amount": [f"cast({k}.25 as decimal(9,2))" for k in range(0, count, 3)],
        "at": [f"timestamp '2024-01-02 00:00:00' + interval {k} hours" for k in range(count)],
        "x": [f"cast({k} as double)" for k in range(0, count, 5)],
    }
    forms = ("{} in ({})", "{} in ({}, null)", "not ({} in ({}))")
    for number, (column, values) in enumerate(lists.items()):  # by day each form twice
        for form in forms if is_nightly() else forms[number % 3 :][:1]:
            query = f"select id from {TABLE} where {form.format(column, ', '.join(values))}"
            assert _answer(engine.query(query)) == _without_pruning(engine, query, monkeypatch), query
    few = engine.query(f"select id from {TABLE} where id in ({', '.join(str(k) for k in range(45, 60))})")
    assert len(_names(few)) <= 4


def test_a_frame_that_was_looked_at_can_still_be_cached(engine: Engine) -> None:
    """Its optimized plan is made early: what the caller caches afterwards is used all the same."""
    frame = engine.query(f"select id, x from {TABLE} where x > -1e9")
    rows = _answer(frame)
    frame.cache()
    try:
        assert _answer(frame) == rows
        assert "InMemoryTableScan" in frame.where("id > 3")._jdf.queryExecution().executedPlan().toString()
    finally:
        frame.unpersist()


def test_file_indexes_leave_files_out(engine: Engine) -> None:
    """A value that one file has opens that file alone, though the manifest has no statistics."""
    options = {"bucket": "24", "metadata.stats-mode": "none", "file-index.bitmap.columns": "s"}
    rows = pa.table({"id": range(200), "s": [f"v{number}" for number in range(200)]})
    engine.create_table("skipping.indexed", rows.schema, primary_key="id", options=options).upsert(rows)
    frame = engine.query("select id from skipping.indexed where s = 'v77'")
    assert [row.id for row in frame.collect()] == [77]
    assert len(_names(frame)) == 1
    assert _names(engine.query("select id from skipping.indexed where s in ('w', 'x')")) == set()
