"""Random keyed streaming models over random changes: after each run they are what a dict says, and Spark's full query.

random_streams   `count` runs of a model; what was run and compared
Shapes     projections with deterministic filters, CTEs, unions of disjoint filters, explode; a lookup table by inner,
           left, semi and anti join, EXISTS, IN, a scalar subquery or a filter by its minimum; key (id) or (id, part)
Steps      a round: commits that put, move and delete rows of the stream, and sometimes of the lookup table → `dbt run`,
           in steps of one snapshot or more → each model against the dict
Meaning    of a model with a lookup: a stream row that changed has the result of the lookup table in its run, all others
           keep theirs. Where the lookup table has not changed since the first run: the full query, asked of Spark too.
INVARIANT  a project takes its choices from its seed alone; the first difference ends it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tablestore_demo.dbt_session import DbtSession
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteMode, WriteSpec

MODELS_OF_A_PROJECT, ROUNDS_OF_A_PROJECT = 6, 5
Value = str | None
Names = dict[str, str]
Row = tuple[int, str, Value]  # id, part, name
_LETTERS = "abcdef"
_FEED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}))
_NAMES = WriteSpec(table=TableSpec(primary_key=("v",), options={"bucket": "1"}))
_ALL = WriteSpec(mode=WriteMode.OVERWRITE_TABLE)
_FILES = {
    "dbt_project.yml": "name: s\nversion: '1.0'\nprofile: s\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": """s:
  target: dev
  outputs:
    dev: {type: tablestore, warehouse: ./warehouse, schema: demo, threads: 1,
          spark: {master: 'local[2]', conf: {spark.sql.shuffle.partitions: '2'}}}
""",
    "models/s.yml": "sources: [{name: raw, schema: demo, tables: [{name: feed}, {name: names}]}]",
}


@dataclass(frozen=True)
class _Filter:
    sql: str
    keeps: Callable[[int, Value], bool]


@dataclass(frozen=True)
class _Lookup:
    """`name`: the column; `join` and `where` in SQL; `find`: the names of a row, none: it is left out."""

    name: str
    join: str
    where: str
    find: Callable[[Value, Names], list[Value]]


_TRUE = _Filter("true", lambda _i, _v: True)
_FILTERS = (
    _TRUE,
    _Filter("s.v < 'd'", lambda _i, v: v is not None and v < "d"),
    _Filter("s.id % 3 <> 1", lambda i, _v: i % 3 != 1),
    _Filter("(s.v is null or s.id > 3)", lambda i, v: v is None or i > 3),
    _Filter("upper(s.v) in ('A', 'C', 'E')", lambda _i, v: v in ("a", "c", "e")),
)
_T = "{{ source('raw', 'names') }}"
_PLAIN = _Lookup("s.v", "", "true", lambda v, _n: [v])
_LOOKUPS = (
    _PLAIN,
    _Lookup("n.name", f"join {_T} n on n.v = s.v", "true", lambda v, n: [n[v]] if v in n else []),
    _Lookup("n.name", f"left join {_T} n on n.v = s.v", "true", lambda v, n: [n.get(v or "")]),
    _Lookup("s.v", f"left semi join {_T} n on n.v = s.v", "true", lambda v, n: [v] if v in n else []),
    _Lookup("s.v", f"left anti join {_T} n on n.v = s.v", "true", lambda v, n: [] if v in n else [v]),
    _Lookup(
        "s.v",
        "",
        f"exists (select 1 from {_T} n where n.v = s.v)",
        lambda v, n: [v] if v in n else [],
    ),
    _Lookup("s.v", "", f"s.v in (select v from {_T})", lambda v, n: [v] if v in n else []),
    _Lookup("(select max(name) from " + _T + " n where n.v = s.v)", "", "true", lambda v, n: [n.get(v or "")]),
    _Lookup("s.v", "", f"s.v >= (select min(v) from {_T})", lambda v, n: [v] if v and n and v >= min(n) else []),
)  # fmt: skip
_KINDS = "s._row_kind, s._snapshot_id"


@dataclass(frozen=True)
class Shape:
    """One random model. `splits`: of a union, whose branches share no row; `unfolds`: two rows for each."""

    key: tuple[str, ...]
    where: _Filter
    lookup: _Lookup
    splits: bool
    is_cte: bool
    unfolds: bool
    steps: int | None

    def text(self) -> str:
        """The model's file."""
        steps = "" if self.steps is None else f", max_snapshots_per_batch={self.steps}"
        head = f"{{{{ config(materialized='streaming', unique_key={list(self.key)}{steps}) }}}}\n"
        return head + self.query("{{ stream(source('raw', 'feed')) }}")

    def query(self, stream: str) -> str:
        """The query over `stream`."""
        source = "s0" if self.is_cte else stream
        conditions = (
            ["coalesce(s.v < 'c', false)", "not coalesce(s.v < 'c', false)"] if self.splits else ["true"]
        )
        text = "\nunion all\n".join(self._branch(source, one) for one in conditions)
        return f"with s0 as (select * from {stream})\n{text}" if self.is_cte else text

    def _branch(self, source: str, condition: str) -> str:
        where = f"{self.where.sql} and {self.lookup.where} and {condition}"
        part = "coalesce(upper(s.v), '-')"
        unfold = ""
        if self.unfolds:
            part, unfold = "t.x", f"lateral view explode(array({part}, concat({part}, '!'))) t as x"
        return (
            f"select s.id, {part} as part, {self.lookup.name} as name, {_KINDS} "
            f"from {source} s {unfold} {self.lookup.join} where {where}"
        )

    def rows(self, number: int, value: Value, names: Names) -> list[Row]:
        """Of one row of the stream."""
        if not self.where.keeps(number, value):
            return []
        part = (value or "-").upper()
        parts = [part, f"{part}!"] if self.unfolds else [part]
        return [(number, one, name) for one in parts for name in self.lookup.find(value, names)]


def random_shape(rng: random.Random) -> Shape:
    """What unfolds has a lookup that is row-local: other keys than those of the stream's row are refused."""
    unfolds = rng.random() < 0.2
    return Shape(
        ("id", "part") if unfolds or rng.random() < 0.4 else ("id",),
        rng.choice(_FILTERS),
        _PLAIN if unfolds else rng.choice(_LOOKUPS),
        rng.random() < 0.3,
        rng.random() < 0.3,
        unfolds,
        rng.choice([None, None, 1, 2]),
    )


class _World:
    """The stream and the lookup table, what changed since the last run, and what each model has to be."""

    def __init__(
        self, engine: Engine, rng: random.Random, shapes: Sequence[Shape], *, is_still: bool
    ) -> None:
        self._engine, self._rng, self._shapes = engine, rng, shapes
        self.is_still = is_still  # the lookup table never changes
        self._feed: dict[int, Value] = {}
        self.names = {one: one * 2 for one in rng.sample(_LETTERS, 4)}
        self._changed: set[int] = set()
        self.expected: list[dict[int, list[Row]]] = [{} for _ in shapes]
        self._put({number: rng.choice(_LETTERS) for number in range(6)})
        self._put_names(self.names)

    def change(self) -> str:
        """Commits of one round."""
        made: list[str] = []
        for _ in range(self._rng.randrange(4)):
            how = self._rng.choice(["put", "put", "delete", "delete", "replace"])
            getattr(self, f"_{how}_some")()
            made.append(how)
        if not self.is_still and self._rng.random() < 0.7:
            self._change_names()
            made.append("names")
        return "+".join(made) or "nothing"

    def settle(self, *, everything: bool) -> None:
        """A run has taken what changed. `everything`: a full refresh."""
        for shape, rows in zip(self._shapes, self.expected, strict=True):
            for number in list({*rows, *self._feed} if everything else self._changed):
                rows.pop(number, None)
                if number in self._feed:
                    rows[number] = shape.rows(number, self._feed[number], self.names)
        self._changed.clear()

    def _put_some(self) -> None:
        numbers = self._rng.sample(range(9), self._rng.randrange(1, 4))
        self._put({one: self._rng.choice([*_LETTERS, None]) for one in numbers})

    def _delete_some(self) -> None:
        numbers = self._rng.sample(range(9), 2)
        self._engine.sql(f"delete from demo.feed where id in ({numbers[0]}, {numbers[1]})")
        self._become({key: value for key, value in self._feed.items() if key not in numbers})

    def _replace_some(self) -> None:
        kept = dict(self._rng.sample(sorted(self._feed.items()), min(4, len(self._feed))))
        kept[self._rng.randrange(9)] = self._rng.choice(_LETTERS)
        self._engine.write("demo.feed", _table(kept), _ALL)
        self._become(kept)

    def _put(self, rows: dict[int, Value]) -> None:
        self._engine.write("demo.feed", _table(rows), _FEED)
        self._become({**self._feed, **rows})
        self._changed |= set(rows)  # a row that is written again as it was is a change, too

    def _become(self, feed: dict[int, Value]) -> None:
        missing = object()
        self._changed |= {
            key for key in {*feed, *self._feed} if feed.get(key, missing) != self._feed.get(key, missing)
        }
        self._feed = feed

    def _change_names(self) -> None:
        for gone in self._rng.sample(_LETTERS, 2):
            self._engine.sql(f"delete from demo.names where v = '{gone}'")
            self.names.pop(gone, None)
        self._put_names({self._rng.choice(_LETTERS): str(self._rng.randrange(100))})

    def _put_names(self, names: Names) -> None:
        made = pa.table({"v": pa.array(names, pa.string()), "name": pa.array(names.values(), pa.string())})
        self._engine.write("demo.names", made, _NAMES)
        self.names |= names


def _table(rows: dict[int, Value]) -> pa.Table:
    return pa.table({"id": pa.array(rows, pa.int64()), "v": pa.array(rows.values(), pa.string())})


def random_streams(seed: int, count: int, folder: Path) -> Counter[str]:
    """Projects until `count` runs of a model were compared. Raises AssertionError with the model and its rows."""
    total: Counter[str] = Counter()
    for number in range(0, count, MODELS_OF_A_PROJECT * ROUNDS_OF_A_PROJECT):
        total += play_project(seed + number, folder / str(number))
    return total


def play_project(seed: int, folder: Path) -> Counter[str]:
    """One project of random models."""
    rng = random.Random(seed)
    shapes = [random_shape(rng) for _ in range(MODELS_OF_A_PROJECT)]
    files = _FILES | {f"models/m{number}.sql": shape.text() for number, shape in enumerate(shapes)}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    engine = Engine(str(folder / "warehouse"), spark=SparkSettings("local[2]"))
    engine.create_database("demo")
    world, session = _World(engine, rng, shapes, is_still=rng.random() < 0.4), DbtSession(folder)
    counts: Counter[str] = Counter()
    for turn in range(ROUNDS_OF_A_PROJECT):
        made = world.change() if turn else "begin"
        is_full = turn > 0 and rng.random() < 0.1
        done = session.invoke("run", *(["--full-refresh"] if is_full else []))
        assert done.success, (seed, turn, [one.message for one in done.nodes], done)
        world.settle(everything=turn == 0 or is_full)
        for number, shape in enumerate(shapes):
            _compare(engine, f"m{number}", shape, world, f"seed {seed}, round {turn} ({made})")
        counts += Counter({"runs of a model": len(shapes), "full refreshes": int(is_full)})
    return counts + Counter({"models": len(shapes), "projects with a lookup that stays": int(world.is_still)})


def _compare(engine: Engine, name: str, shape: Shape, world: _World, where: str) -> None:
    found = sorted(map(tuple, engine.sql(f"select id, part, name from demo.{name}").rows), key=repr)
    rows = world.expected[int(name[1:])]
    expected = sorted((row for each in rows.values() for row in each), key=repr)
    assert found == expected, f"{where}, {shape.text()}\nfound {found}\nexpected {expected}"
    if not world.is_still and shape.lookup is not _PLAIN:
        return
    query = shape.query("(select *, '+I' as _row_kind, 1L as _snapshot_id from demo.feed)")
    query = query.replace(_T, "demo.names")
    full = sorted(map(tuple, engine.sql(f"select id, part, name from ({query})").rows), key=repr)
    assert found == full, f"{where}, {shape.text()}\nfound {found}\nfull query {full}"
