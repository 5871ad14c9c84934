"""Tags that commits make by period, and tags whose time is over."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema import new_schema
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.sql.statement import SetProperties
from tablestore_engine.store.expiry.automatic_tags import expire_tags, make_due_tags
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tag_period import TagRule
from tablestore_engine.warehouse.statements.alter_statement import alter_schema
from tests.doses import examples
from tests.doubles.faults import DyingFileIO, SimulatedCrash, seeded_runtime
from tests.unit.store.table_world import make_table, open_table, put, row, rows_of

SEEDS = itertools.count(90_000)
ON = {"tag.automatic-creation": "process-time"}


def ms(text: str) -> int:
    """Epoch milliseconds of a time of UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def clock(start_ms: int) -> Runtime:
    """With ids of its own."""
    return seeded_runtime(next(SEEDS), start_ms=start_ms)


def at(root: Path, text: str) -> TableStore:
    """A handle whose clock begins at this time."""
    return open_table(root, runtime=clock(ms(text)))


def rule_of(options: Mapping[str, str]) -> TagRule | None:
    """The rule that these options of a table make."""
    return TableTraits(new_schema(pa.schema([("id", pa.int64())]), options=options)).tag_rule


def commit(root: Path, text: str, number: int) -> tuple[str, ...]:
    """One row at this time, and the tags that it makes."""
    store = at(root, text)
    put(store, row(number))
    rule = TableTraits(store.schema).tag_rule
    assert rule is not None
    return make_due_tags(store.context, rule)


@pytest.mark.parametrize(
    ("options", "time", "name"),
    [
        ({}, "2026-03-01T00:30", "2026-02-28"),
        ({"tag.creation-period": "hourly"}, "2026-03-01T00:30", "2026-02-28 23"),
        ({"tag.creation-period": "two-hours"}, "2026-03-01T05:30", "2026-03-01 02"),
    ],
)
def test_name_is_that_of_the_period_before_the_snapshot(
    options: Mapping[str, str], time: str, name: str
) -> None:
    """Names of Paimon; the next tag is due when the period after this one has ended."""
    rule = rule_of({**ON, **options})
    assert rule is not None
    assert rule.find_due(ms(time), None) == name
    start = rule.start_of(name)
    assert start is not None
    due = int((start + 2 * rule.period).replace(tzinfo=UTC).timestamp() * 1000)
    assert rule.find_due(due - 1, name) is None
    assert rule.find_due(due, name) == rule.name_of(start + rule.period)
    assert rule.start_of("month_end") is None


def test_rule_that_cannot_be_kept_is_refused() -> None:
    """A delay of a whole period, by every way to set options; a kind of creation that is not built."""
    with pytest.raises(FixRequest, match="TS1376"):
        rule_of({**ON, "tag.creation-delay": "1 d"})
    assert rule_of({}) is None


def test_wrong_rule_changes_no_table(tmp_path: Path) -> None:
    """At creation and by ALTER TABLE."""
    engine = Engine(str(tmp_path))
    late = {**ON, "tag.creation-delay": "2 d"}
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options=late))
    with pytest.raises(FixRequest, match="TS1376"):
        engine.write("demo.t", [{"id": 1}], spec)
    assert engine.find_table("demo.t") is None
    engine.write("demo.t", [{"id": 1}], WriteSpec(table=TableSpec(primary_key=("id",), options=ON)))
    schema = engine.table("demo.t").store.schema
    for value in ("watermark", "batch"):
        with pytest.raises(TablestoreError, match=r"tag\.automatic-creation"):
            alter_schema(schema, SetProperties((("tag.automatic-creation", value),)), ())
    with pytest.raises(FixRequest, match="TS1376"):
        alter_schema(schema, SetProperties((("tag.creation-delay", "2 d"),)), ())


def test_commits_tag_each_day_once(tmp_path: Path) -> None:
    """The first commit of a day tags the day before; a commit that was killed before that is made up for."""
    make_table(tmp_path, options=ON)
    assert commit(tmp_path, "2026-03-01T10:00", 1) == ("2026-02-28",)
    assert commit(tmp_path, "2026-03-01T23:00", 2) == ()
    assert commit(tmp_path, "2026-03-02T00:00", 3) == ("2026-03-01",)
    put(at(tmp_path, "2026-03-03T08:00"), row(4))  # killed before its tag
    assert commit(tmp_path, "2026-03-03T09:00", 5) == ("2026-03-02",)
    assert open_table(tmp_path).tags.list_all() == {"2026-02-28": 1, "2026-03-01": 3, "2026-03-02": 4}


def linear(times: Sequence[int], rule: TagRule) -> dict[str, int]:
    """What a walk over all snapshots tags: the oracle."""
    found: dict[str, int] = {}
    last: str | None = None
    for number, time in enumerate(times, 1):
        name = rule.find_due(time, last)
        if name is not None and name not in found:
            found[name], last = number, name
    return found


@pytest.mark.parametrize("seed", range(examples(3, 6)))
def test_random_histories_have_the_tags_of_a_walk_over_all_snapshots(tmp_path: Path, seed: int) -> None:
    """Commits at random times, some of which died before their tag."""
    chance = random.Random(seed)
    options = {
        **ON,
        "tag.creation-period": chance.choice(["daily", "hourly", "two-hours"]),
        "tag.creation-delay": chance.choice(["0 ms", "20 min"]),
    }
    make_table(tmp_path, options=options)
    now, times = ms("2026-03-01T22:10"), []
    for number in range(12):
        now += chance.choice([60_000, 3_000_000, 7_000_000, 90_000_000])
        store = open_table(tmp_path, runtime=clock(now))
        put(store, row(number))
        newest = store.latest()
        assert newest is not None
        times.append(newest.time_millis)
        rule = TableTraits(store.schema).tag_rule
        assert rule is not None
        if number == 11 or chance.random() < 0.6:
            make_due_tags(store.context, rule)
    assert open_table(tmp_path).tags.list_all() == linear(times, rule)


def test_oldest_go_and_those_of_users_stay(tmp_path: Path) -> None:
    """tag.num-retained-max counts the tags of periods alone; files that only a deleted tag had are gone with it."""
    make_table(tmp_path, options={**ON, "tag.num-retained-max": "2"})
    for day in range(1, 6):
        commit(tmp_path, f"2026-03-0{day}T10:00", day)
        at(tmp_path, "2026-03-01T10:00").tags.create(f"mine{day}")
    assert list(open_table(tmp_path).tags.list_all()) == [
        "2026-03-03", "2026-03-04", *(f"mine{day}" for day in range(1, 6)),
    ]  # fmt: skip


def test_tags_go_when_their_time_is_over(tmp_path: Path) -> None:
    """By the next commit that makes a tag, or when asked; not with tag.time-expire-enabled=false."""
    make_table(tmp_path, options={**ON, "tag.default-time-retained": "36 h"})
    commit(tmp_path, "2026-03-01T10:00", 1)
    store = at(tmp_path, "2026-03-02T21:59:59")
    assert expire_tags(store.context) == ()
    store = at(tmp_path, "2026-03-02T22:00:01")
    assert expire_tags(store.context, dry_run=True) == ("2026-02-28",)
    assert list(store.tags.list_all()) == ["2026-02-28"]
    assert commit(tmp_path, "2026-03-03T10:00", 2) == ("2026-03-02",)
    assert list(open_table(tmp_path).tags.list_all()) == ["2026-03-02"]

    kept = make_table(tmp_path / "kept", options={"tag.time-expire-enabled": "false"})
    put(kept, row(1))
    kept.tags.create("x", create_time=datetime(2020, 1, 1), time_retained=timedelta(1))  # noqa: DTZ001 -- of a tag
    assert expire_tags(kept.context) == ()


def test_two_processes_make_a_tag_once(tmp_path: Path) -> None:
    """The one that comes second goes on without an error."""
    make_table(tmp_path, options=ON)
    put(at(tmp_path, "2026-03-01T10:00"), row(1))
    first, second = at(tmp_path, "2026-03-01T10:01"), at(tmp_path, "2026-03-01T10:02")
    rule = TableTraits(first.schema).tag_rule
    assert rule is not None
    put(second, row(2))
    assert make_due_tags(first.context, rule) == ("2026-02-28",)
    assert make_due_tags(second.context, rule) == ()
    assert open_table(tmp_path).tags.list_all() == {"2026-02-28": 1}


def test_kill_at_each_change_of_a_name_is_made_up_for(tmp_path: Path) -> None:
    """Whatever was done, the next commit leaves the two newest tags, and rows of all of them can be read."""
    for changes in range(1, 40):
        root = tmp_path / str(changes)
        options = {**ON, "tag.num-retained-max": "2", "snapshot.num-retained.min": "1"}
        make_table(root, options=options)
        for day in (1, 2, 3):
            commit(root, f"2026-03-0{day}T10:00", day)
        put(at(root, "2026-03-04T10:00"), row(4))
        runtime = clock(ms("2026-03-04T10:01"))
        dying = open_table(
            root, runtime=runtime, fileio=DyingFileIO(LocalFileIO(str(root)), changes_left=changes)
        )
        rule = TableTraits(dying.schema).tag_rule
        assert rule is not None
        try:
            make_due_tags(dying.context, rule)
        except SimulatedCrash:
            commit(root, "2026-03-05T10:00", 5)
            expected = ["2026-03-03", "2026-03-04"]
        else:
            expected = ["2026-03-02", "2026-03-03"]
            assert changes > 1
        store = open_table(root)
        assert list(store.tags.list_all()) == expected
        for name in expected:
            assert rows_of(open_table(root), snapshot_id=store.tags.get(name).snapshot.id)
        if expected[-1] == "2026-03-03":
            return
    pytest.fail("it never ended")


def test_commits_of_an_engine_say_their_tags(tmp_path: Path) -> None:
    """The report, its line, and a retention that is given with a tag."""
    engine = Engine(str(tmp_path))
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options={**ON, "tag.creation-period": "hourly"}))
    report = engine.write("demo.t", [{"id": 1}], spec)
    assert len(report.tags) == 1
    assert report.summary() == f"snapshot 1 (+1 ~0 -0) · tag {report.tags[0]}"
    table = engine.table("demo.t")
    assert dict(table.list_tags()) == {report.tags[0]: 1}
    table.tag("short", time_retained=timedelta(days=2))
    assert table.store.tags.get("short").time_retained == timedelta(days=2)
    before = datetime(2020, 1, 1)  # noqa: DTZ001 -- of a tag
    table.store.tags.create("over", create_time=before, time_retained=timedelta(days=2))
    assert table.expire(dry_run=True).tags == ("over",)
    assert table.expire().tags == ("over",)
    assert list(table.list_tags()) == [*report.tags, "short"]
