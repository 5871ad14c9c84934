"""Queries whose filters name keys are answered by look-ups, without a job, as Spark answers them from files."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.catalog.read_log import ReadLog
from tablestore_engine.catalog.resolved_names import Overrides
from tablestore_engine.errors import TablestoreError
from tablestore_engine.spark.fetch_rows import fetch
from tablestore_engine.spark.key_reads import KeyReads
from tablestore_engine.warehouse.statements import data_test_answer
from tablestore_engine.warehouse.statements.data_test_answer import answer_without_spark
from tests.doses import examples

_NOON = dt.datetime(2026, 3, 29, 12)  # noqa: DTZ001 - wall clock
# types of columns, each of them of a key in one of the tables if a key may have it; their values
_TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [-1, 0, 7, 2**31 - 1]),
    "b": (pa.int64(), [0, 2**53 + 1, -(2**63)]),
    "s": (pa.string(), ["", "a", "a ", "A", "it's", "x\ny"]),
    "d": (pa.date32(), [dt.date(1582, 10, 4), dt.date(2026, 2, 28)]),
    "n": (pa.timestamp("us"), [_NOON, _NOON + dt.timedelta(microseconds=1)]),
    "z": (pa.timestamp("us", "UTC"), [_NOON, _NOON + dt.timedelta(seconds=1)]),
    "p": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-0.01")]),
    "f": (pa.bool_(), [False, True]),
    "r": (pa.float64(), [0.0, -0.0, 1.5, float("nan"), float("inf")]),
    "w": (pa.binary(), [b"", b"a\0"]),
    "l": (pa.list_(pa.int32()), [[], [1, None]]),
    "t": (pa.struct([("x", pa.int32())]), [{"x": 1}, {"x": None}]),
}
# what statements compare them with
_LITERALS: dict[str, list[str]] = {
    "i": ["7", "-1", "2147483647", "2147483648", "7.0", "'7'", "null"],
    "b": ["0", "9007199254740993", "cast(0 as tinyint)", "1 - 1"],
    "s": ["'a'", "'a '", "''", "concat('', 'A')", "'it''s'", "'x\ny'"],
    "d": ["'2026-02-28'", "date'1582-10-04'", "date'2026-02-27' + interval 1 day"],
    "n": ["timestamp_ntz'2026-03-29 12:00:00'", "'2026-03-29 12:00:00.000001'"],
    "z": ["timestamp'2026-03-29 12:00:00 UTC'", "'2026-03-29T12:00:01Z'"],
    "p": ["1.5", "-0.01", "1.505", "cast('1.5' as decimal(20, 5))"],
    "f": ["true", "1 = 1"],
    "r": ["0", "double('NaN')", "1.5"],
    "w": ["x''", "cast('a' as binary)"],
    "l": ["array()", "array(1, null)"],
    "t": ["named_struct('x', 1)"],
}
_KEYS: dict[str, list[str]] = {
    "one": ["b"], "several": ["s", "i"], "parts": ["d", "b"], "times": ["n", "z"], "money": ["p", "f"], "reals": ["r"],
}  # fmt: skip


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A table for each key: written twice, its rows deleted in part, its schema changed meanwhile."""
    with Engine(str(tmp_path_factory.mktemp("keys")), spark=SparkSettings("local[2]")) as opened:
        for name, key in _KEYS.items():
            draw = random.Random(name)
            schema = pa.schema([pa.field(one, kind) for one, (kind, _) in _TYPES.items()])
            parts = ["d"] if name == "parts" else []
            table = opened.create_table(
                f"k.{name}", schema, primary_key=key, partition_by=parts, options={"bucket": 2}
            )
            table.upsert(_rows(draw, schema, key))
            opened.sql(f"alter table k.{name} add column later string")
            opened.sql(f"alter table k.{name} alter column i type bigint") if name == "one" else None
            rows = _rows(draw, schema, key)
            table.upsert(rows.append_column("later", pa.array(rows["i"].cast(pa.string()))))
            table.delete("i = 0") if "i" not in key else table.delete("b = 0")
        yield opened


def _rows(draw: random.Random, schema: pa.Schema, key: list[str]) -> pa.Table:
    found: dict[str, dict[str, Any]] = {}
    for _ in range(60):
        row = {
            name: draw.choice(values if name in key else [*values, None])
            for name, (_, values) in _TYPES.items()
        }
        found[repr([row[one] for one in key])] = row
    return pa.Table.from_pylist(list(found.values()), schema)


def _statement(draw: random.Random) -> str:
    """A random query whose filters compare the columns of a key."""
    name = draw.choice(list(_KEYS))
    asked = [_compared(draw, one) for one in _KEYS[name]]
    if draw.random() < 0.4:
        asked.append(_compared(draw, draw.choice(list(_LITERALS))))
    if draw.random() < 0.1:
        asked.append("(i > 0 or later is null)")
    draw.shuffle(asked)
    where = " and ".join(asked)
    shape = draw.choice(
        [
            "select * from k.{t} where {w}",
            "select i, b, s, later, d, n, p, f, r, w from k.{t} where {w}",
            "select i + 1, upper(s) as S, later, d from k.{t} as o where {w}",
            "select count(*), max(s), sum(p) from k.{t} where {w}",
            "select * from (select * from k.{t} where {w}) limit 3",
            "with c as (select * from k.{t} where {w}) select a.i, b.s from c a, c b",
            "select s from k.{t} where {w} union all select 'other' union all select s from k.one where b = 0",
            "select x.s, o.b from k.{t} as x left join k.one as o on o.i = x.i where {x}",
            "select s from k.one where exists (select 1 from k.{t} as t where {w} and t.later is null) order by s",
            "select 1 / (i - i) from k.{t} where {w}",
            "select rand(7) < 2, i from k.{t} where {w}",
        ]
    )
    qualified = " and ".join(f"x.{one}" if one[0] != "(" else "true" for one in asked)
    return shape.format(t=name, w=where, x=qualified)


def _compared(draw: random.Random, column: str) -> str:
    texts = _LITERALS[column]
    if draw.random() < 0.3:
        return f"{column} in ({', '.join(draw.choice(texts) for _ in range(3))})"
    return f"{column} {draw.choice(['=', '=', '<=>'])} {draw.choice(texts)}"


def _answer(engine: Engine, text: str) -> object:
    try:
        done = engine.sql(text)
    except TablestoreError as error:
        return error.code
    return done.columns, sorted(map(repr, done.rows))


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each statement whether a look-up took the place of a table."""
    log: list[bool] = []
    real = KeyReads.answered

    def noted(self: KeyReads, frame: DataFrame, meanings: Any) -> DataFrame:
        found = real(self, frame, meanings)
        log.append(found is not frame)
        return found

    monkeypatch.setattr(KeyReads, "answered", noted)
    monkeypatch.setattr(data_test_answer, "read_key_query", lambda _: None)
    return log


def test_random_queries_by_key_give_the_rows_types_and_errors_that_spark_reads_from_files(
    engine: Engine, answered: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over keys of every type, with literals of other types, partitions, deletions and changed columns."""
    draw = random.Random(20261130)
    texts = [_statement(draw) for _ in range(examples(8, 250))]
    found = [_answer(engine, text) for text in texts]
    assert sum(answered) >= len(texts) // 3
    assert sum(not isinstance(one, str) and len(one[1]) > 0 for one in found) >= len(texts) // 4  # type: ignore[arg-type]
    with monkeypatch.context() as patched:
        patched.setattr(KeyReads, "answered", lambda _, frame, __: frame)
        for text, one in zip(texts, found, strict=True):
            assert one == _answer(engine, text), text


@pytest.mark.parametrize(
    ("text", "is_by_key"),
    [
        ("select * from k.one where b = 0 or b = 9007199254740993", True),
        ("select s from k.several version as of 1 where s = 'a' and i = 7", True),
        ("select * from k.one where b = 0 and d = current_date()", False),
        ("select input_file_name(), s from k.one where b = 0", False),
        ("select * from k.several where s = 'a'", False),
        ("select * from k.one where b + 0 = 0", False),
        ("select * from k.reals where r = 0.0", False),
    ],
)
def test_a_look_up_by_the_whole_key_starts_no_job(
    engine: Engine, answered: list[bool], text: str, is_by_key: bool
) -> None:
    """Nothing else is answered so: keys that are known in part, times, functions of files, keys of DOUBLE."""
    engine.sql(text)
    jobs = engine.spark.sparkContext._jsc.sc().dagScheduler().nextJobId
    before = jobs() if callable(jobs) else jobs
    engine.sql(text)
    assert answered == [is_by_key] * 2
    if is_by_key:
        assert (jobs() if callable(jobs) else jobs) == before


def _plain_query(draw: random.Random) -> str:
    """A text that asks a key, nearly always as it may be answered without Spark."""
    name = draw.choice(["one", "several", "parts"])
    values: dict[str, list[str]] = {
        "b": ["0", "9007199254740993", "-123456789012345678", "5"],
        "i": ["7", "-1", "2147483647", "2147483648"],
        "s": ["'a'", "'a '", "''", "'A'", "'x\ny'", "'nobody'"],
    }
    asked = [one for one in _KEYS[name] if one in values]
    asked += [one for one in values if one not in asked and draw.random() < 0.2]
    parts = []
    for one in draw.sample(asked, len(asked)):
        listed = [draw.choice(values[one]) for _ in range(draw.choice([1, 1, 2, 3]))]
        is_list = len(listed) > 1 or draw.random() < 0.2
        parts.append(f"{one} in ({', '.join(listed)})" if is_list else f"{one} = {listed[0]}")
    columns = [one for one in [*_TYPES, "later"] if one not in ("z", "l", "t")]
    shown = draw.choice(["*", ", ".join(draw.choices(columns, k=draw.randint(1, 12)))])
    return f"select {shown} from k.{name} where {' and '.join(parts)}"


def test_random_texts_of_keys_are_answered_without_spark_as_spark_does(engine: Engine) -> None:
    """Columns, rows and what was read are equal; types whose values depend on the session are Spark's."""
    draw, answered = random.Random(20261201), 0
    for _ in range(examples(40, 400)):
        text, log, log_of_spark = _plain_query(draw), ReadLog(), ReadLog()
        found = answer_without_spark(engine._warehouse, text, Overrides(reads=log))
        with engine._warehouse.running(needs_spark=True):
            wanted = fetch(engine._warehouse.resolver.pinned_query(text, Overrides(reads=log_of_spark))[0])
        if found is None:
            assert log.reads() == ()
            continue
        answered += len(found.rows)
        assert found.columns == wanted.columns, text
        assert sorted(map(repr, found.rows)) == sorted(map(repr, wanted.rows)), text
        assert log.reads() == log_of_spark.reads()
    assert answered >= 10


@pytest.mark.parametrize(
    "text",
    [
        "select * from k.one where b = 0",  # z is shown in the session's zone
        "select B from k.one where b = 0",
        "select b from k.one where B = 0",
        "select b from k.one where b = '0'",
        "select b from k.one where b = true",
        "select b from k.one where i = 7",
        "select i from k.several where s = 'a'",
        "select i from k.several where s = 'a' and i = 2147483648",
        "select i from k.several where s = 5 and i = 7",
        "select i from k.times where n = '2026-03-29 12:00:00'",
        "select i from k.reals where r = 0",
        "select nothing from k.one where b = 0",
        "select b from k.nothing where b = 0",
        "select b from k.seen where b = 0",
    ],
)
def test_what_is_not_proven_is_left_to_spark(engine: Engine, text: str) -> None:
    """Types, casts, parts of keys, names in another letter case, views."""
    engine.create_view("k.seen", "select * from k.one")
    assert answer_without_spark(engine._warehouse, text, Overrides()) is None


def test_a_frame_of_a_look_up_keeps_the_rows_of_its_state(engine: Engine) -> None:
    """Rows are those of the analysis, as with files."""
    table = engine.create_table("k.more", [{"b": 0, "s": "first"}], primary_key="b")
    table.upsert([{"b": 0, "s": "first"}])
    frame = engine.query("select s from k.more where b = 0")
    before = frame.collect()
    table.upsert([{"b": 0, "s": "second"}])
    assert frame.collect() == before == [("first",)]
    assert engine.sql("select s from k.more where b = 0").rows == (("second",),)
