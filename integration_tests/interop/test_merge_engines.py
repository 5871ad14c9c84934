"""Every merge engine against Java Paimon: the same batches, by each of us alone and by both in turns, give equal rows.

Judge      a table that only Java writes, compacting with every commit; no test says what the rows must be.
Batches    keys repeat within a batch and over batches, so that versions meet in the write buffer, in level 0 and below.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.oracle import Kinded
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import Change, Row, arrow_rows, assert_same
from integration_tests.interop.schemas import Schema, Type, schema
from tablestore_engine.warehouse.write.converted_schema import plan_conversion
from tests.doses import case_rows, cases, examples

FULLY, WAITING = {"write-only": "false"}, {"write-only": "true"}
_KEYS, _BATCH, _BATCHES = 12, 14, examples(2, 4)


@dataclass(frozen=True)
class Engine:
    """Columns besides `id`, options, and what kinds of rows a batch may have.

    form   hides orders that Java leaves open
    filled   columns without NULL. When Java drops the values of a row without its sequence depends on file sizes
    """

    columns: Mapping[str, Type]
    options: Mapping[str, str]
    kinds: tuple[str, ...] = ("+I",)
    form: Callable[[Sequence[Row]], list[Row]] = list
    vectors: bool = True
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    filled: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema:
        """With the key `id`, in two buckets."""
        vectors = {"deletion-vectors.enabled": str(self.vectors).lower(), "changelog-producer": "lookup"}
        return schema(
            {"id": "BIGINT", **self.columns}, keys=("id",), options={"bucket": "2", **vectors, **self.options}
        )

    def batch(self, chance: random.Random) -> list[Kinded]:
        """Rows of repeated keys; a value is NULL in one of four."""
        return [
            (
                chance.choice(self.kinds),
                {"id": chance.randrange(_KEYS), **{name: self._value(name, chance) for name in self.columns}},
            )
            for _ in range(_BATCH)
        ]

    def _value(self, name: str, chance: random.Random) -> Any:
        is_null = chance.random() < 0.25 and name not in self.filled
        return None if is_null else chance.choice(self.values[name])


def _functions(**named: str) -> dict[str, str]:
    return {
        "merge-engine": "aggregation",
        **{f"fields.{column}.aggregate-function": function for column, function in named.items()},
    }


def _unordered(rows: Sequence[Row]) -> list[Row]:
    """Arrays in an order of their own: that of distinct elements is Java's hash table's."""
    return [
        tuple(tuple(sorted(v, key=repr)) if isinstance(v, tuple) and v[:1] != ("map",) else v for v in row)
        for row in rows
    ]


def _without_order(at: int) -> Callable[[Sequence[Row]], list[Row]]:
    """The array at this place in an order of its own: that of rows by nested key is Java's hash table's."""

    def form(rows: Sequence[Row]) -> list[Row]:
        return [(*row[:at], *_unordered([row[at : at + 1]])[0], *row[at + 1 :]) for row in rows]

    return form


_CENTS = [Decimal("0.01"), Decimal("-7.25"), Decimal("120.00")]
_MAPS = [[("a", 1)], [("b", 2), ("a", 9)], [("c", None)], []]
_ROW: Type = ("ROW", (("k", "INT"), ("t", "STRING")))
_ROWS = (
    [{"k": 1, "t": "a"}],
    [{"k": 2, "t": "b"}, {"k": 1, "t": "c"}, {"k": 2, "t": None}],
    [],
    [None, {"k": None, "t": "d"}],
)
_TIMED = (
    [("x", {"k": 1, "t": "10"})],
    [("x", {"k": 2, "t": "9"}), ("y", {"k": 3, "t": None})],
    [("y", {"k": 4, "t": "ä"}), ("z", None)],
    [("x", None), ("z", {"k": 5, "t": "10"})],
)
_BITMAPS = tuple(
    bytes((one.run_optimize() and one.serialize()) or one.serialize())
    for one in (BitMap(range(5, 90)), BitMap([1, 7, 70_000]), BitMap(range(0, 60, 2)), BitMap())
)
_NESTED: dict[str, Type] = {
    "a": ("ARRAY", _ROW),
    "b": ("ARRAY", _ROW),
    "c": ("ARRAY", _ROW),
    "m": ("MAP", "STRING", _ROW),
    "r": "BYTES",
}
_NESTED_FUNCTIONS = {
    "fields.a.aggregate-function": "nested_update",
    "fields.b.aggregate-function": "nested_update",
    "fields.b.nested-key": "k",
    "fields.c.aggregate-function": "nested_update",
    "fields.c.count-limit": "3",
    "fields.m.aggregate-function": "merge_map_with_keytime",
    "fields.r.aggregate-function": "rbm32",
}
_NESTED_VALUES = {"a": _ROWS, "b": _ROWS, "c": _ROWS, "m": _TIMED, "r": _BITMAPS}
ENGINES: dict[str, Engine] = {
    "nested": Engine(
        _NESTED,
        {"merge-engine": "aggregation", **_NESTED_FUNCTIONS},
        form=_without_order(2),
        values=_NESTED_VALUES,
    ),
    "nested-retractions": Engine(
        {"a": ("ARRAY", _ROW), "b": ("ARRAY", _ROW), "c": ("ARRAY", _ROW)},
        {"merge-engine": "aggregation", **{k: v for k, v in _NESTED_FUNCTIONS.items() if k[7] in "abc"}},
        kinds=("+I", "+I", "+U", "-U", "-D"),
        form=_without_order(2),
        values=_NESTED_VALUES,
    ),
    "nested-groups": Engine(
        {"g": "INT", **_NESTED},
        {"merge-engine": "partial-update", "fields.g.sequence-group": "a,b,c,m,r", **_NESTED_FUNCTIONS},
        form=_without_order(3),
        filled=("g",),
        values={"g": range(4), **_NESTED_VALUES},
    ),
    "sums": Engine(
        {
            "i": "INT",
            "b": "BIGINT",
            "d": "DECIMAL(10, 2)",
            "w": "DECIMAL(30, 2)",
            "f": "FLOAT",
            "x": "DOUBLE",
        },
        {
            **_functions(i="sum", b="sum", d="sum", w="sum", f="sum"),
            "fields.default-aggregate-function": "sum",
        },
        kinds=("+I", "+U", "-U", "-D"),
        values={
            "i": range(-5, 9),
            "b": (2**40, -3, 10**15),
            "d": _CENTS,
            "w": [10**20 * one for one in _CENTS],
            "f": (0.1, 1e7, -0.3),
            "x": (0.1, 1e16, -1.0, 3.3),
        },
    ),
    "picks": Engine(
        {
            "lo": "STRING",
            "hi": "DATE",
            "a": "INT",
            "b": "STRING",
            "c": "STRING",
            "e": "BOOLEAN",
            "o": "BOOLEAN",
        },
        _functions(
            lo="min",
            hi="max",
            a="first_value",
            b="first_non_null_value",
            c="last_value",
            e="bool_and",
            o="bool_or",
        ),
        values={
            "lo": ("b", "a", "ä", "A", "zz"),
            "hi": (dt.date(2024, 1, 1), dt.date(1969, 1, 1), dt.date(2030, 5, 5)),
            "a": range(9),
            "b": "abcd",
            "c": "abcd",
            "e": (True, False),
            "o": (True, False),
        },
    ),
    "lists": Engine(
        {"t": "STRING", "u": "STRING", "c": ("ARRAY", "INT"), "m": ("MAP", "STRING", "INT"), "p": "BIGINT"},
        {
            **_functions(t="listagg", u="listagg", c="collect", m="merge_map", p="product"),
            "fields.u.distinct": "true",
            "fields.u.list-agg-delimiter": "; ",
        },
        values={
            "t": ("x", "y", "x,y"),
            "u": ("x", "y", "x; z", "y; y"),
            "c": ([1], [2, 3, 2], [], [None, 1]),
            "m": _MAPS,
            "p": (1, -1, 2, 3),
        },
    ),
    "retractions": Engine(
        {
            "v": "INT",
            "n": "STRING",
            "c": ("ARRAY", "INT"),
            "s": ("ARRAY", "STRING"),
            "m": ("MAP", "STRING", "INT"),
            "big": "INT",
        },
        {
            **_functions(
                v="last_value", n="last_non_null_value", c="collect", s="collect", m="merge_map", big="max"
            ),
            "fields.s.distinct": "true",
            "fields.big.ignore-retract": "true",
        },
        kinds=("+I", "+U", "-U", "-D"),
        form=_unordered,
        values={
            "v": range(9),
            "n": "abcd",
            "c": ([1], [2, 3, 2], [], [None, 1]),
            "s": (["a"], ["b", "a"], ["c", "d"]),
            "m": _MAPS,
            "big": range(20),
        },
    ),
    "removing": Engine(
        {"i": "INT", "v": "STRING", "t": "STRING"},
        {**_functions(i="sum", t="last_value"), "aggregation.remove-record-on-delete": "true"},
        kinds=("+I", "+I", "-U", "-D"),
        values={"i": range(9), "v": "abc", "t": "xyz"},
    ),
    "partial": Engine(
        {"a": "STRING", "b": "INT", "c": ("ARRAY", "INT")},
        {"merge-engine": "partial-update"},
        values={"a": "abcd", "b": range(9), "c": ([1], [2, 3], [])},
    ),
    "partial-removing": Engine(
        {"a": "STRING", "b": "INT", "c": "STRING"},
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        kinds=("+I", "+I", "+U", "-U", "-D"),
        values={"a": "abcd", "b": range(9), "c": "xyz"},
    ),
    "partial-ignoring": Engine(
        {"a": "STRING", "b": "INT", "at": "INT"},
        {"merge-engine": "partial-update", "ignore-delete": "true", "sequence.field": "at"},
        kinds=("+I", "+U", "-U", "-D"),
        values={"a": "abcd", "b": range(9), "at": range(5)},
    ),
    "groups": Engine(
        {"g": "INT", "a": "STRING", "b": "INT", "h1": "INT", "c": "STRING", "h2": "STRING", "free": "STRING"},
        {
            "merge-engine": "partial-update",
            "fields.g.sequence-group": "a,b",
            "fields.h1,h2.sequence-group": "c",
        },
        kinds=("+I", "+I", "+U", "-U", "-D"),
        values={
            "g": range(4),
            "a": "abcd",
            "b": range(9),
            "h1": range(3),
            "c": "xyz",
            "h2": "pq",
            "free": "mno",
        },
    ),
    "groups-removing": Engine(
        {"a": "STRING", "g": "INT", "h": "INT", "c": "STRING"},
        {
            "merge-engine": "partial-update",
            "fields.g.sequence-group": "a",
            "fields.h.sequence-group": "c",
            "partial-update.remove-record-on-sequence-group": "g",
        },
        kinds=("+I", "+I", "+U", "-U", "-D"),
        values={"a": "abcd", "g": range(4), "h": range(3), "c": "xyz"},
    ),
    "groups-aggregating": Engine(
        {
            "g": "INT",
            "s": "INT",
            "t": "STRING",
            "f": "STRING",
            "m": ("MAP", "STRING", "INT"),
            "big": "INT",
            "c": ("ARRAY", "INT"),
            "n": "STRING",
        },
        {
            **_functions(s="sum", t="listagg", f="first_value", m="merge_map", big="max", c="collect"),
            "merge-engine": "partial-update",
            "fields.n.aggregate-function": "last_non_null_value",
            "fields.g.sequence-group": "s,t,f,m,big,c,n",
        },
        values={
            "g": range(4),
            "s": range(9),
            "t": "xyz",
            "f": "abcd",
            "m": _MAPS,
            "big": range(20),
            "c": ([1], [2, 3, 2], []),
            "n": "uvw",
        },
    ),
    "groups-retracting": Engine(
        {
            "g": "INT",
            "s": "INT",
            "v": "STRING",
            "n": "STRING",
            "m": ("MAP", "STRING", "INT"),
            "big": "INT",
            "c": ("ARRAY", "INT"),
            "free": "INT",
        },
        {
            **_functions(
                s="sum", v="last_value", n="last_non_null_value", m="merge_map", big="max", c="collect"
            ),
            "merge-engine": "partial-update",
            "fields.big.ignore-retract": "true",
            "fields.g.sequence-group": "s,v,n,m,big,c",
        },
        kinds=("+I", "+I", "+U", "-U", "-D"),
        values={
            "g": range(4),
            "s": range(9),
            "v": "xyz",
            "n": "uvw",
            "m": _MAPS,
            "big": range(20),
            "c": ([1], [2, 3, 2], []),
            "free": range(9),
        },
    ),
    "kinds": Engine(
        {"k": "STRING", "n": "INT"},
        {"rowkind.field": "k", "ignore-update-before": "true"},
        values={"k": ("+I", "+I", "+U", "-U", "-D"), "n": range(9)},
        filled=("k",),
    ),
    "kinds-retracting": Engine(
        {"k": "STRING", "n": "INT"},
        {**_functions(n="sum", k="last_value"), "rowkind.field": "k", "first-row.ignore-delete": "false"},
        values={"k": ("+I", "+I", "+U", "-U", "-D"), "n": range(9)},
        filled=("k",),
    ),
    "sequenced": Engine(
        {"i": "INT", "v": "STRING", "at": "INT", "t": "STRING"},
        {**_functions(i="sum", t="listagg"), "sequence.field": "at"},
        values={"i": range(9), "v": "abc", "at": range(5), "t": "xyz"},
    ),
    "first-row": Engine(
        {"text": "STRING", "n": "INT"},
        {"merge-engine": "first-row"},
        vectors=False,
        values={"text": "abcdef", "n": range(9)},
    ),
    "first-row-ignoring": Engine(
        {"text": "STRING", "n": "INT"},
        {"merge-engine": "first-row", "ignore-delete": "true"},
        kinds=("+I", "+U", "-U", "-D"),
        vectors=False,
        values={"text": "abcdef", "n": range(9)},
    ),
}


# by day those that retract, with groups and without: each of the others is by day alone, below
_IN_TURNS = ("groups-retracting", "partial-removing", "sequenced")


@pytest.fixture(params=cases(ENGINES, 10))
def engine(request: pytest.FixtureRequest) -> Engine:
    """One entry of ENGINES."""
    return ENGINES[request.param]


class Table:
    """One table of one engine; each write is a batch of both forms."""

    def __init__(self, location: Path, engine: Engine, java: JavaPaimon) -> None:
        self.location, self.engine, self.java, self.us = location, engine, java, Ours()

    def ours(self, batch: Sequence[Kinded]) -> None:
        """We commit."""
        rows = arrow_rows(self.engine.schema, [row for _, row in batch])
        kinds = [kind for kind, _ in batch] if len(self.engine.kinds) > 1 else None
        self.us.write(self.location, rows, kinds, duplicates="last")

    def theirs(self, batch: Sequence[Kinded], options: Mapping[str, str] | None = None) -> None:
        """Java commits; without FULLY it leaves level 0 in a write-only table."""
        rows = arrow_rows(self.engine.schema, [row for _, row in batch])
        self.java.write(self.location, rows, [kind for kind, _ in batch], options=options)

    def check(self, expected: Sequence[Row], where: str) -> None:
        """Both readers show these rows; our own checks find nothing."""
        for reader in (self.java, self.us):
            shown = self.engine.form(reader.read(self.location))
            assert_same(expected, shown, f"{reader.name} reads {where}")
        assert self.us.store(self.location).verify() == (), where

    def rows(self) -> list[Row]:
        """As Java reads them."""
        return self.engine.form(self.java.read(self.location))


@pytest.mark.parametrize("seed", cases([1, 2, 5, 6], 1))
def test_our_tables_and_java_s_have_equal_rows(
    java: JavaPaimon, engine: Engine, tmp_path: Path, seed: int
) -> None:
    """The same batches in a table of ours and in one of Java's, each read by both; compactions change nothing."""
    chance = random.Random(seed)
    ours, theirs = (Table(tmp_path / "m.db" / name, engine, java) for name in ("ours", "theirs"))
    ours.us.create(ours.location, engine.schema)
    java.create(theirs.location, engine.schema)
    for number in range(_BATCHES):
        batch = engine.batch(chance)
        theirs.theirs(batch)
        expected = theirs.rows()
        ours.ours(batch)
        ours.check(expected, f"ours after batch {number}")
        theirs.check(expected, f"theirs after batch {number}")
    ours.us.compact(ours.location)
    java.compact(theirs.location)
    ours.check(expected, "ours, compacted by us")
    theirs.check(expected, "theirs, compacted by Java")
    java.compact(ours.location)
    ours.check(expected, "ours, compacted by Java")


@pytest.mark.parametrize("seed", cases([3, 4, 7, 8], 1))
@pytest.mark.parametrize(
    "engine",
    [one if one in _IN_TURNS else pytest.param(one, marks=pytest.mark.nightly) for one in ENGINES],
    indirect=True,
)
def test_a_table_written_in_turns_has_the_rows_of_java_alone(
    java: JavaPaimon, engine: Engine, tmp_path: Path, seed: int
) -> None:
    """Our commits, Java's in level 0 (several at once), Java's with its compaction: rows and changelog are right."""
    chance = random.Random(seed)
    shared, judge = (Table(tmp_path / "m.db" / name, engine, java) for name in ("shared", "judge"))
    shared.us.create(shared.location, engine.schema)
    java.create(judge.location, engine.schema)
    for number in range(_BATCHES):
        first, second, third, fourth = (engine.batch(chance) for _ in range(4))
        for table in (shared, judge):  # in level 0: what merges both at once depends on how many there are
            table.theirs(first, WAITING)
            table.theirs(second, WAITING)
        java.compact(judge.location)
        judge.theirs(third)
        shared.ours(third)
        shared.check(judge.rows(), f"the shared table after round {number}")
        judge.theirs(fourth)
        shared.theirs(fourth, FULLY)
        shared.check(judge.rows(), f"the shared table after Java wrote round {number}")
    told = _told(java, shared)
    replayed = _replayed([(kind, engine.form([row])[0]) for kind, row in told])
    assert_same(replayed, judge.rows(), "the changelog, as Java streams it")


@pytest.mark.parametrize(
    ("name", "seed"), case_rows([(name, seed) for seed in (9, 10, 11) for name in ENGINES], 3)
)
def test_java_s_table_that_merges_on_read_is_read_and_converted(
    java: JavaPaimon, name: str, tmp_path: Path, seed: int
) -> None:
    """Without deletion vectors: whatever lies in level 0 and above, our rows are Java's; so they are after a
    conversion, and after a commit of ours. With `lookup`, rows above level 0 have older ones in them.
    """
    chance = random.Random(seed)
    producer = "none" if seed % 2 else "lookup"
    plain = {"num-sorted-run.compaction-trigger": "3", "changelog-producer": producer}
    engine = ENGINES[name]
    merged = replace(engine, options={**engine.options, **plain}, vectors=False)
    table = Table(tmp_path / "m.db" / "merged", merged, java)
    java.create(table.location, merged.schema)
    for number in range(2 * _BATCHES):
        table.theirs(merged.batch(chance), chance.choice((FULLY, WAITING)))
        rows = merged.form(table.us.read(table.location))
        assert_same(table.rows(), rows, f"ours after batch {number}")
    if producer == "lookup":  # level 0 has no changelog yet: a conversion asks for a compaction (TS1558)
        java.compact(table.location)
    expected = table.rows()
    table.us.store(table.location).convert(plan_conversion(table.us.store(table.location), None, "uuid-1"))
    table.check(expected, "the converted table")
    table.ours(merged.batch(chance))
    table.check(table.rows(), "the converted table after our commit")


def _told(java: JavaPaimon, table: Table) -> list[Change]:
    stream = java.stream(table.location, scan__mode="from-snapshot", scan__snapshot_id="1")
    return [change for _, batch in stream.poll() for change in batch]


def _replayed(told: Sequence[Change]) -> list[Row]:
    """The rows after a changelog; what is retracted was there."""
    rows: dict[Any, Row] = {}
    for kind, row in told:
        if kind in ("-U", "-D"):
            assert rows.pop(row[0]) == row
        else:
            assert row[0] not in rows
            rows[row[0]] = row
    return list(rows.values())
