"""The time of a run as an input: keys and deltas between two random moments in random zones are those of the query."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from integration_tests.spark.traced_world import collected_keys
from tablestore_engine.api import ChangesBetween, Engine, SparkSettings, TableSpec, TableVersion, WriteSpec
from tablestore_engine.queryplan.run_time import RUN_TIME
from tablestore_engine.spark.plan_builder_nodes import PlanBuilderNodes
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.run_time_plan import Elapsed, RunTimes
from tablestore_engine.spark.traced_answers import Before
from tablestore_engine.spi import MOMENT
from tests.doses import cases, examples

Rows = Counter[tuple[Any, ...]]
V, P = "demo.visits", "demo.prices"
KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "1"}))
BEGIN = datetime(
    2026, 3, 25, tzinfo=UTC
)  # Europe's clocks go forward on 29 March, those of Santiago back on 5 April
HOURS = 24 * 16
ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/Santiago", "Pacific/Kiritimati")
Shape = tuple[str, str, bool]  # query, key, whether deltas follow the time


def visits(condition: str, columns: str = "id") -> Shape:
    """Rows of one table by a condition."""
    return f"select {columns} from {V} where {condition}", "id", True


def kinds(columns: str, more: str = "", *, has_deltas: bool = True) -> Shape:
    """Groups of one table."""
    return f"select kind, {columns} from {V} group by kind {more}", "kind", has_deltas


def joined(columns: str, key: str, join: str, *, has_deltas: bool = False) -> Shape:
    """Two tables."""
    return f"select {columns} from {V} v {join}", key, has_deltas


QUERIES: dict[str, Shape] = {
    "date": visits("day >= current_date() - interval 5 days", "id, n"),
    "exclusive": visits("day > date_sub(current_date(), 5)", "id, n"),
    "between": visits("at between now() - interval 36 hours and current_timestamp()"),
    "other side": visits("not (current_timestamp() <= at) or n = 3"),
    "date of a timestamp": visits("to_date(at) = curdate()"),
    "wall clock": visits("clock >= localtimestamp() - interval 1 day"),
    "timestamp beside a wall clock": visits("clock < current_timestamp()"),
    "month": visits("at >= date_trunc('month', now())"),
    "unix": visits("unix_timestamp(at) > unix_timestamp() - 86400"),
    "case": visits("true", "id, case when at > now() then 'later' when at is null then '?' end as w"),
    "days": visits("n > 2", "id, datediff(current_date(), day) as days"),
    "key that moves": (f"select distinct date_add(current_date(), n) as d from {V}", "d", True),
    "filter": kinds("count(*) as n, count(*) filter (where day < current_date()) as past"),
    "sum": kinds("sum(if(at < now(), n, 0)) as s, count(*) as c"),
    "groups": (f"select day < current_date() as past, count(*) as c from {V} group by 1", "past", True),
    "having": kinds("max(at) as m", "having max(at) < now()", has_deltas=False),
    "recency": kinds("datediff(current_date(), max(day)) as r, count(*) as c", has_deltas=False),
    "left join": joined(
        "v.id, p.n as price", "id,price", f"left join {P} p on p.kind = v.kind and p.at <= now()"
    ),
    "left side": joined("v.id, p.id as p", "id", f"left join {P} p on p.id = v.n and v.at <= now()"),
    "both sides": joined(
        "v.id, p.id as p",
        "id,p",
        f"join {P} p on p.kind = v.kind and v.at + (now() - p.at) > v.at",
        has_deltas=True,
    ),
    "exists": joined(
        "id", "id", f"where exists (select 1 from {P} p where p.kind = v.kind and p.at > now())"
    ),
    "not in": joined("id", "id", f"where v.n not in (select p.id from {P} p where p.day <= current_date())"),
    "newest": (
        (
            "select * from (select id, kind, row_number() over (partition by kind order by at desc, id) as r "
            f"from {V} where at <= now()) where r = 1"
        ),
        "id",
        False,
    ),
    "named": (
        (
            "with t as (select current_date() as today) "
            f"select id from {V}, t where day between today - 3 and today"
        ),
        "id",
        True,
    ),
    "days of a calendar": ("select explode(sequence(date'2026-03-20', current_date())) as d", "d", True),
    "union": (
        (
            f"select 'v' as t, id from {V} where day < current_date() "
            f"union all select 'p', id from {P} where at > now()"
        ),
        "t,id",
        True,
    ),
}


def literal(sql: str, at: datetime, zone: str) -> str:
    """The query with the values that functions of the time have then and there, as Python has them."""
    local, micros = (
        at.astimezone(ZoneInfo(zone)).replace(tzinfo=None),
        at.astimezone(UTC).replace(tzinfo=None),
    )
    values = {
        r"\b(current_date|curdate)\(\)": f"date'{local.date()}'",
        r"\b(now|current_timestamp)\(\)": f"timestamp'{micros}Z'",
        r"\blocaltimestamp\(\)": f"timestamp_ntz'{local}'",
        r"\bunix_timestamp\(\)": f"{math.floor(at.timestamp())}L",
    }
    for pattern, value in values.items():
        sql = re.sub(pattern, value, sql)
    return sql


def rows(numbers: range, chance: random.Random) -> pa.Table:
    """Moments by the hour, on the hour; some NULL."""
    made = []
    for number in numbers:
        at = None if chance.random() < 0.1 else BEGIN + timedelta(hours=chance.randrange(HOURS))
        clock = None if at is None else at.replace(tzinfo=None)
        day = None if chance.random() < 0.1 or clock is None else clock.date()
        made.append(
            {
                "id": number,
                "kind": chance.randrange(5),
                "n": chance.randrange(9),
                "at": at,
                "clock": clock,
                "day": day,
            }
        )
    types = [("id", pa.int64()), ("kind", pa.int64()), ("n", pa.int32()), ("at", pa.timestamp("us", "UTC"))]
    return pa.Table.from_pylist(
        made, pa.schema([*types, ("clock", pa.timestamp("us")), ("day", pa.date32())])
    )


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Two tables in two states each."""
    folder: Path = tmp_path_factory.mktemp("time")
    chance = random.Random(20261130)
    with Engine(str(folder), spark=SparkSettings("local[2]", {"spark.sql.shuffle.partitions": "1"})) as made:
        for name, count in ((V, 120), (P, 12)):
            made.write(name, rows(range(count), chance), KEYED)
            made.write(name, rows(range(count // 2, count // 2 + count // 6), chance), KEYED)
            made.sql(f"delete from {name} where id = 3")
        yield made


@dataclass(frozen=True)
class Turn:
    """Two moments, and which tables change between them."""

    zone: str
    past: datetime
    now: datetime
    tables: tuple[str, ...] = ()

    @classmethod
    def of(cls, chance: random.Random) -> Turn:
        """At random."""
        first = BEGIN + timedelta(hours=chance.randrange(HOURS), milliseconds=chance.choice((0, 0, 1, -1)))
        last = first + timedelta(
            hours=chance.choice((0, 1, 1, 24, 24, 100, -30)), seconds=chance.choice((0, 0, 1))
        )
        return cls(chance.choice(ZONES), first, last, tuple(one for one in (V, P) if chance.random() < 0.4))

    def versions(self, engine: Engine, *, is_new: bool) -> dict[str, TableVersion]:
        """Of the tables, and the time."""
        newest = {
            one: engine.table(one).latest_snapshot_id() if is_new and one in self.tables else 1
            for one in (V, P)
        }
        found = {one: TableVersion(snapshot=number) for one, number in newest.items()}
        return found | moment(self.now if is_new else self.past)

    def changes(self, engine: Engine) -> dict[str, TableVersion]:
        """Ranges of the tables, and the moment of the last run."""
        found = {one: ChangesBetween(1, engine.table(one).latest_snapshot_id()) for one in self.tables}
        return {one: TableVersion(changes=between) for one, between in found.items()} | moment(self.past)


def moment(at: datetime) -> dict[str, TableVersion]:
    """The time of a statement."""
    return {MOMENT: TableVersion(timestamp_ms=math.floor(at.timestamp() * 1000))}


def find_errors(engine: Engine, shape: str, turn: Turn) -> list[str]:
    """What keys, deltas and the query at a moment have otherwise than the query with literals."""
    engine.spark.conf.set("spark.sql.session.timeZone", turn.zone)
    try:
        return [f"{error} of {QUERIES[shape][0]}: {turn}" for error in _errors(engine, shape, turn)]
    finally:
        engine.spark.conf.set("spark.sql.session.timeZone", "UTC")


def _errors(engine: Engine, shape: str, turn: Turn) -> Iterator[str]:
    sql, names, has_deltas = QUERIES[shape]
    key, versions = tuple(names.split(",")), turn.versions(engine, is_new=True)
    old_sql, new_sql = literal(sql, turn.past, turn.zone), literal(sql, turn.now, turn.zone)
    before = turn.versions(engine, is_new=False)
    old, new = result(engine, old_sql, before), result(engine, new_sql, versions)
    if result(engine, sql, versions) != new:
        yield "the query at a moment"
    with engine.changed_keys.trace(sql, versions=versions) as traced:
        assert traced.follows_time
        assert (traced.volatile, traced.general_clause(key)) == (None, None)
        numbers = [traced.columns.index(one) for one in key]
        found = traced.affected_keys(key, turn.changes(engine), {})
        assert found.clause == ""
        keys = collected_keys(engine, traced, found)
    if {tuple(row[at] for at in numbers) for row in (old - new) + (new - old)} - keys:
        yield "affected keys"
    if has_deltas and not any(row[at] is None for row in old for at in numbers):  # NULL is no primary key
        engine.sql("drop table if exists demo.result")
        spec = WriteSpec(table=TableSpec(primary_key=key, options={"bucket": "1"}))
        engine.write("demo.result", old_sql, spec, versions=before)
        if _with_deltas(engine, sql, key, turn, old, new) != new:
            yield "deltas"


def result(engine: Engine, sql: str, versions: dict[str, TableVersion]) -> Rows:
    """Rows of the full query."""
    return Counter(tuple(row) for row in engine.query(sql, versions=versions).collect())


def _with_deltas(engine: Engine, sql: str, key: tuple[str, ...], turn: Turn, old: Rows, new: Rows) -> Rows:
    """The old rows with what deltas make of them."""
    views = (engine.changed_keys.new_view(), engine.changed_keys.new_view())
    with engine.changed_keys.trace(sql, versions=turn.versions(engine, is_new=True)) as traced:
        stored = engine.changed_keys.stored_rows(engine.table("demo.result"))
        found = traced.plan_deltas(key, turn.changes(engine), has_state=False).follow(Before(stored, views))
        numbers = [traced.columns.index(one) for one in key]
    if found.clause:
        assert turn.tables, found.clause  # an input has no deltas, the time has
        return new

    def key_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(row[at] for at in numbers)

    made = {key_of(row): row for row in old}
    known = [] if found.table is None else list(zip(*found.table.to_pydict().values(), strict=True))
    for *row, kind in known if found.view is None else engine.spark.table(found.view).collect():
        made.pop(key_of(tuple(row)), None)
        made |= {} if kind else {key_of(tuple(row)): tuple(row)}
    again = (
        []
        if found.again.view is None
        else [tuple(one) for one in engine.spark.table(found.again.view).collect()]
    )
    made = {one: row for one, row in made.items() if one not in again}
    return Counter([*made.values(), *(row for row in new.elements() if key_of(row) in again)])


@pytest.mark.parametrize("shape", cases(QUERIES, 3))
def test_random_moments_and_zones_lose_nothing(engine: Engine, shape: str) -> None:
    """Keys and deltas, where inputs change, too, and where they do not."""
    chance = random.Random(shape)
    for _ in range(examples(2, 3)):
        assert find_errors(engine, shape, Turn.of(chance)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("shape", QUERIES)
def test_many_random_moments_and_zones_lose_nothing(engine: Engine, shape: str) -> None:
    """The same with a seed of the day."""
    seed = datetime.now(UTC).date().toordinal()
    chance = random.Random(f"{shape} {seed}")
    for _ in range(25):
        assert find_errors(engine, shape, Turn.of(chance)) == [], seed


@pytest.mark.parametrize("shape", [one for one, (_, _, has_deltas) in QUERIES.items() if has_deltas])
def test_time_alone_has_deltas(engine: Engine, shape: str) -> None:
    """No clause prevents them."""
    sql, names, _ = QUERIES[shape]
    with engine.changed_keys.trace(sql, versions=moment(BEGIN)) as traced:
        assert traced.followed_deltas(tuple(names.split(",")))[RUN_TIME].clause == ""


@pytest.mark.parametrize("shape", ["newest", "left join", "exists", "not in"])
def test_time_below_an_operation_that_is_not_linear_has_no_deltas(engine: Engine, shape: str) -> None:
    """It is joined without a condition. Changes of the tables beside it have none either: the query is one plan."""
    sql, names, _ = QUERIES[shape]
    with engine.changed_keys.trace(sql, versions=moment(BEGIN)) as traced:
        found = traced.followed_deltas(tuple(names.split(",")))
    table = V if shape == "newest" else P  # the one beside the time
    for one in (RUN_TIME, table):
        assert found[one].clause == "a join without a condition below an operation that is not linear"


def _same_moment(patch: pytest.MonkeyPatch) -> None:
    """The moment of the last run is that of this run."""
    patch.setattr(RunTimes, "since", lambda self, _: Elapsed(self._inner, self._now, self._now))


def _no_zone(patch: pytest.MonkeyPatch) -> None:
    """Days and wall clocks are those of UTC."""
    real = PlanBuilderNodes.moment

    def in_utc(self: PlanBuilderNodes, function: Any, moment_ms: int) -> Any:
        kind = str(function.nodeName())
        in_zone = function if kind in ("CurrentTimestamp", "Now") else self.time_function(kind, "UTC")
        return real(self, in_zone, moment_ms)

    patch.setattr(PlanBuilderNodes, "moment", in_utc)


def _other_boundary(patch: pytest.MonkeyPatch) -> None:
    """A row on the first boundary is left out."""
    real = PlanBuilderNodes.between

    def exclusive(self: PlanBuilderNodes, row: Any, one: Any, other: Any) -> Any:
        return self.all_of([real(self, row, one, other), self.negated(self._expressions.EqualTo(row, one))])

    patch.setattr(PlanBuilderNodes, "between", exclusive)


@pytest.mark.parametrize("plant", cases([_same_moment, _no_zone, _other_boundary], 2))
def test_planted_error_is_found(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """By a shape that includes its boundary or by one that does not; without the error it has none."""
    at = BEGIN + timedelta(days=5, hours=9)
    turns = [Turn("Pacific/Kiritimati", at, at + timedelta(hours=hours)) for hours in (24, 1)]
    tried = [(shape, turn) for shape in ("date", "wall clock") for turn in turns]
    with monkeypatch.context() as patch:
        plant(patch)
        noticed = next(one for one in tried if find_errors(engine, *one))
    assert find_errors(engine, *noticed) == []


def test_files_outside_the_interval_are_not_read(engine: Engine) -> None:
    """Of a table in ten files, one for each day, two days differ: other files are not among those of the plan."""
    for day in range(10):
        at = [BEGIN + timedelta(days=day, hours=hour) for hour in range(24)]
        engine.write(
            "demo.log", pa.table({"id": [*range(day * 24, day * 24 + 24)], "at": at}), WriteSpec(TableSpec())
        )
    sql = "select id, at from demo.log where at >= now() - interval 1 day and id >= 0"
    files: list[list[str]] = []
    prune = Resolver.prune

    def watched(self: Resolver, frame: Any) -> Any:
        made = prune(self, frame)
        files.append(made.inputFiles())
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Resolver, "prune", watched)
        with engine.changed_keys.trace(sql, versions=moment(BEGIN + timedelta(days=6, hours=20))) as traced:
            changes = moment(BEGIN + timedelta(days=5, hours=20))
            found = traced.affected_keys(("id",), changes, {})
    assert found.count == 24
    assert len(set(files[0])) == 2
