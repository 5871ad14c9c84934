"""Filters as text: DuckDB, which reads the same text, is the oracle; and what is refused."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, FixRequest, Table
from tests.doses import examples
from tests.unit.api.filter_world import SCHEMA, World, names, small_groups

WORLDS = examples(1, 150)
FILTERS = examples(40, 60)
_LITERALS = {
    "id": ["0", "7", "-1", "40", "7.5"],
    "tiny": ["0", "-128", "128", "127", "-129", "1.5", "-0.5", "99999999999999999999999"],
    "big": [
        "0",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "9007199254740993",
        "0.5",
    ],
    "f": ["0", "0.1", "0.5", "-0.0", "1", "16777216", "16777217", "1e30"],
    "d": ["0", "0.1", "1", "1e300", "-0.0", "5e-324", "1.7976931348623157e308", "9007199254740993"],
    "price": ["0", "1.5", "1.505", "-9999999.99", "10000000", "9999999.999", "-0.015"],
    "wide": ["0", "1.5", "0.00000000005", "99999999999999999999.9999999999", "-1.5"],
    "day": ["DATE '2026-01-31'", "'2026-01-31'", "'1969-12-31'", "DATE '0001-01-01'"],
    "moment": ["TIMESTAMP '2026-01-31 14:00:00.000001'", "'2026-01-31'", "'1969-12-31T23:59:59.999999'"],
    "sent": ["TIMESTAMP '2026-01-31 14:00:00.000001Z'", "'2026-01-31 01:00:00+01:00'", "'1970-01-01 00:00Z'"],
    "name": ["''", "'a'", "'ab'", "'é'", "'it''s'", "'zz'", "'\U0001f600'"],
    "part": ["'eu'", "'us'", "'nowhere'"],
}
_PATTERNS = ["'a%'", "'%'", "'a_c'", "'%b%'", "'_'", "'z_z'", "''", "'abc'", "'%c'", "'x%x'"]


def _leaf(chance: random.Random) -> str:
    column = chance.choice([*_LITERALS, "flag"])
    shape = chance.randrange(8)
    if shape == 7:
        return _keys(chance)
    if shape == 0:
        return f"{column} is {chance.choice(['', 'not '])}null"
    if column == "flag":
        return chance.choice(
            ["flag", "flag = true", "flag <> false", "not flag", "false = flag", "true", "false"]
        )
    negation, some = chance.choice(["", "not "]), chance.choices(_LITERALS[column], k=3)
    if shape == 1:
        return f"{column} {negation}in ({', '.join(some)})"
    if shape == 2:
        return f"{column} {negation}between {some[0]} and {some[1]}"
    if shape == 3 and column in ("name", "part"):
        return f"{column} {negation}like {chance.choice(_PATTERNS)}"
    operator = chance.choice(["=", "!=", "<>", "<", "<=", ">", ">="])
    return f"{some[0]} {operator} {column}" if shape == 4 else f"{column} {operator} {some[0]}"


def _keys(chance: random.Random) -> str:
    """Some keys, with or without their partition."""
    numbers = ", ".join(str(chance.randint(-1, 41)) for _ in range(chance.choice([1, 1, 3, 30])))
    part = chance.choice(["", " and part = 'eu'", " and part in ('us', 'a b')", " and part > 'b'"])
    return f"id in ({numbers}){part}"


def _text(chance: random.Random, depth: int = 0) -> str:
    """A condition; AND, OR and NOT with and without parentheses."""
    shape = chance.randrange(6) if depth < 3 else 5
    if shape <= 1:
        words = [_text(chance, depth + 1) for _ in range(chance.randint(2, 3))]
        return f" {chance.choice(['and', 'or'])} ".join(words)
    if shape == 2:
        return f"not ({_text(chance, depth + 1)})"
    if shape == 3:
        return f"({_text(chance, depth + 1)})"
    return _leaf(chance)


class _DuckDB:
    """The rows in DuckDB. FLOAT is compared as DOUBLE there too, and integers and decimals where nothing is rounded."""

    def __init__(self, rows: pa.Table) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("set TimeZone = 'UTC'")
        self._connection.register("stored", rows)
        self._connection.execute(
            "create table t as "
            "select * replace (f::double as f, big::hugeint as big, tiny::hugeint as tiny) from stored"
        )

    def matching(self, text: str) -> list[tuple[object, object]]:
        """Names of the rows that the condition is TRUE of."""
        return sorted(self._connection.execute(f"select id, part from t where {text}").fetchall())


@pytest.mark.parametrize("seed", range(WORLDS))
def test_filter_text_random_tables_gives_the_rows_of_duckdb(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same text over the same rows, in DuckDB and by a scan: the same rows, whole, in part and limited."""
    small_groups(monkeypatch)
    world = World(tmp_path, seed)
    oracle, chance = _DuckDB(world.expected()), random.Random(seed)
    for _ in range(FILTERS):
        text = _text(chance)
        wanted = oracle.matching(text)
        scan = world.table.scan(filter=text)
        assert names(scan.to_arrow()) == wanted, text
        some = world.table.scan(columns=["part", "id"], filter=text, limit=2)
        found = pa.Table.from_batches(some.to_batches(), some.schema)
        assert found.column_names == ["part", "id"]
        assert found.num_rows == min(2, len(wanted)), text
        assert set(names(found)) <= set(wanted), text


@pytest.mark.parametrize("seed", range(WORLDS))
def test_delete_by_filter_random_tables_keeps_the_rows_of_duckdb(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After delete(text) the rows are there that DuckDB keeps: those it is FALSE or NULL of."""
    small_groups(monkeypatch)
    world = World(tmp_path, seed)
    chance = random.Random(-seed - 1)
    rows = world.expected()
    for _ in range(4):
        text = _text(chance)
        oracle = _DuckDB(rows)
        gone = oracle.matching(text)
        report = world.table.delete(text)
        left = sorted(set(names(rows)) - set(gone))
        assert names(world.table.scan().to_arrow()) == left, text
        assert report.deleted == len(gone), text
        rows = pa.Table.from_pylist(
            [row for row in rows.to_pylist() if (row["id"], row["part"]) in set(left)], SCHEMA
        )


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Columns of all types, and one of a type that filters do not compare."""
    schema = SCHEMA.append(pa.field("bytes", pa.binary())).append(pa.field("Name 2", pa.string()))
    return Engine(str(tmp_path)).create_table("demo.t", schema, primary_key="id")


@pytest.mark.parametrize(
    "text",
    [
        "", "id =", "= 5", "id = 5 5", "id = 5 and", "(id = 5", "id = 5)", "id == == 5", "id in ()", "id in (1,)",
        "id in (1, null)", "id = null", "null", "id is 5", "id not 5", "not", "id like", "name like a",
        "name ilike 'a'", "id between 1",
        "lower(name) = 'a'", "id + 1 = 2", "id = 1 + 1", "id = big", "1 = 1", "'a' = 'a'", "part.x = 1",
        'name = "a"', '"name" = \'a\'', "name = 'a\\'", "name = r'a'", "name like 'a\\_b'", "id = 5L", "d = 1.5d",
        "id = 0x10", "id = 1_0", "id <=> 5", "id = 5; drop", "id = 5 -- x\n or", "case when id = 5 then true end",
        "id = ?", "id = :a", "exists (select 1)", "id = $$a$$", "id = - - 5", "(" * 200 + "id = 5" + ")" * 200,
        "id = 1" + "0" * 500, "id rlike 'a'", "cast(id as string) = '5'", "id::string = '5'", "flag is true",
    ],
)  # fmt: skip
def test_filter_text_outside_of_the_grammar_is_refused(table: Table, text: str) -> None:
    """Never guessed: TS1564 says where."""
    with pytest.raises(FixRequest, match="TS1564"):
        table.scan(filter=text)


@pytest.mark.parametrize(
    "text",
    [
        "nothing = 1", "id", "id = '5'", "id = true", "id = 1e3", "id = DATE '2026-01-01'", "price = 1e0",
        "price = '1.5'", "d = '1'", "d = 1e999", "d = true", "f = DATE '2026-01-01'", "name = 5", "name = true",
        "id like '5'",
        "name = DATE '2026-01-01'", "flag = 1", "flag = 'true'", "flag < true", "name", "day = 5", "day = '2026-1-1'",

        "day = '20260131'", "day = '2026-02-30'", "day = '2026-01-31 00:00:00'", "day = TIMESTAMP '2026-01-31'",
        "moment = '2026-01-31 14:00:00Z'", "moment = DATE '2026-01-31'", "moment = 'now'", "moment = 5",
        "moment = '2026-01-31 14:00:00.0000001'", "sent = '2026-01-31 14:00:00'", "sent = '2026-01-31'",
        "bytes = 'a'", "day in ('2026-01-31', 'x')", "day between 'a' and 'b'",
    ],
)  # fmt: skip
def test_filter_text_literal_of_another_type_is_refused(table: Table, text: str) -> None:
    """Nothing is cast: TS1565 names the column and its type."""
    with pytest.raises(FixRequest, match="TS1565"):
        table.scan(filter=text)


def test_filter_text_names_have_no_case_and_are_quoted(table: Table) -> None:
    """As in SQL; an exact name is preferred."""
    table.upsert([dict.fromkeys(table.schema.field_names) | {"id": 1, "part": "x", "Name 2": "b"}])
    for text in ("ID = 1", "`id` = 1 and `name 2` = 'b'", "/* one */ id = 1 -- the end"):
        assert table.scan(filter=text).to_arrow().num_rows == 1


def test_filter_text_leaves_out_files_that_cannot_match(tmp_path: Path) -> None:
    """Files that no value of the filter lies in are not opened: they may be gone. So are files behind a limit."""
    table = Engine(str(tmp_path)).create_table("demo.t", SCHEMA, options={"bucket": -1})
    empty = dict.fromkeys(SCHEMA.names)
    for number in range(3):
        table.append(
            [empty | {"id": number, "part": "x", "price": number, "name": f"n{number}", "big": None}]
        )
    files = table.scan().plan().files
    for file in files[1:]:
        Path(file.path).unlink()
    for text in ("id < 1", "price <= 0.999", "name like 'n0%'", "id = 0 and big is null", "not (id >= 1)"):
        assert table.scan(filter=text).to_arrow()["id"].to_pylist() == [0], text
    assert table.scan(limit=1).to_arrow()["id"].to_pylist() == [0]
    assert table.scan(filter="id >= 0", limit=1).to_arrow()["id"].to_pylist() == [0]
    assert table.scan(filter="big is not null").to_arrow().num_rows == 0
