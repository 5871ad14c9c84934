"""dbt's moments (UTC) beside columns with and without a zone, in sessions of zones whose clocks change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import pytest

from integration_tests.adapter.conftest import Shop
from tests.doses import examples, is_nightly

# zone -> days on which its clocks change; without a change any day
CHANGES = {
    "America/New_York": ("2024-03-10", "2024-11-03"),
    "Europe/Berlin": ("2024-03-31", "2024-10-27"),
    "Asia/Kolkata": ("2024-03-10",),
    "Pacific/Auckland": ("2024-04-07", "2024-09-29"),
}
DAYS = [
    pytest.param(zone, day, marks=[] if day == "2024-03-31" else pytest.mark.nightly, id=f"{zone} {day}")
    for zone, days in CHANGES.items()
    for day in days
]
KINDS = ("timestamp", "timestamp_ntz", "date")
ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def zoned(shop: Shop, request: pytest.FixtureRequest) -> Iterator[Shop]:
    """A project whose session has the zone of the test."""
    conf = shop.engine.spark.conf
    before = str(conf.get(ZONE))
    zone = request.node.callspec.params["zone"]
    shop.output["spark"]["conf"][ZONE] = zone
    conf.set(ZONE, zone)
    yield shop
    conf.set(ZONE, before)


def write_feeds(shop: Shop, first: date) -> int:
    """A table for each kind of event time: a row for each half hour of three days in UTC; the number of rows."""
    count = 3 * 48
    clock = f"timestampadd(minute, 30 * id, timestamp_ntz '{first} 00:00:00')"
    times = {
        "timestamp": f"timestamp_seconds(unix_seconds(timestamp '{first} 00:00:00Z') + 1800 * id)",
        "timestamp_ntz": clock,
        "date": f"cast({clock} as date)",
    }
    for kind in KINDS:
        config = "{{ config(materialized='table', event_time='at') }}"
        shop.write(f"models/f_{kind}.sql", f"{config} select id, {times[kind]} as at from range({count})")
        for size in ("day", "hour"):
            config = (
                "{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', "
                f"batch_size='{size}', begin='{first}') }}}}"
            )
            shop.write(f"models/{size}_{kind}.sql", f"{config} select * from {{{{ ref('f_{kind}') }}}}")
    return count


def ids(shop: Shop, table: str) -> list[int]:
    """Of the rows that readers see."""
    return [int(row[0]) for row in shop.rows(f"select id from demo.{table} order by id")]


@pytest.mark.parametrize(("zone", "day"), DAYS)
def test_microbatch_in_zone_has_each_row_once(zoned: Shop, zone: str, day: str) -> None:
    """By day and by hour: no row is lost or doubled, whatever the kind of its time. In `make test` one kind for each
    size of a batch; at night both sizes for each, dates, and a second run.
    """
    del zone
    first = date.fromisoformat(day) - timedelta(days=1)
    count = write_feeds(zoned, first)
    zoned.dbt("run", "--select", *(f"f_{kind}" for kind in KINDS[: examples(2, 3)]))
    hours = range(46, 50)  # rows of two hours around a midnight; of a DATE all that have the second day
    expected = {"timestamp": [*hours], "timestamp_ntz": [*hours], "date": [*range(48, 96)]}
    kinds = {
        size: KINDS if is_nightly() else (kind,) for size, kind in zip(("day", "hour"), KINDS, strict=False)
    }
    for _ in range(examples(1, 2)):
        end = first + timedelta(days=3)
        days = ("--event-time-start", str(first), "--event-time-end", str(end))
        zoned.dbt("run", "--select", *(f"day_{kind}" for kind in kinds["day"]), *days)
        night = ("--event-time-start", f"{first} 23:00:00", "--event-time-end", f"{day} 01:00:00")
        zoned.dbt("run", "--select", *(f"hour_{kind}" for kind in kinds["hour"]), *night)
        for kind in kinds["day"]:
            assert ids(zoned, f"day_{kind}") == [*range(count)], kind
        for kind in kinds["hour"]:
            assert ids(zoned, f"hour_{kind}") == expected[kind], kind


@pytest.mark.nightly  # by day the repeated hour below
@pytest.mark.parametrize("zone", ["America/New_York"])
def test_snapshot_with_times_without_zone_is_exact(zoned: Shop, zone: str) -> None:
    """An hour that the session's clocks leave out stays, and a deletion ends its version at the clock of UTC."""
    del zone
    config = "strategy: timestamp, unique_key: id, updated_at: at, hard_deletes: invalidate"
    zoned.write("snapshots/s.yml", f"snapshots: [{{name: s, relation: ref('feed'), config: {{{config}}}}}]")
    feed = "{{ config(materialized='table') }} select * from values "
    zoned.write("models/feed.sql", feed + "(1, timestamp_ntz '2024-01-01 00:00:00'), "
                "(2, timestamp_ntz '2024-01-01 00:00:00') as t(id, at)")  # fmt: skip
    zoned.dbt("build", "--select", "feed", "s")
    zoned.write("models/feed.sql", feed + "(1, timestamp_ntz '2024-03-10 02:30:00') as t(id, at)")
    zoned.dbt("build", "--select", "feed", "s")
    found = zoned.rows(
        "select id, cast(dbt_valid_from as string), cast(dbt_valid_to as string), "
        "abs(timestampdiff(minute, dbt_valid_to, cast(to_utc_timestamp(current_timestamp(), current_timezone()) "
        "as timestamp_ntz))) < 30 from demo.s order by 1, 2"
    )
    assert found[0][:3] == (1, "2024-01-01 00:00:00", "2024-03-10 02:30:00")
    assert found[1][:3] == (1, "2024-03-10 02:30:00", None)
    assert (found[2][0], found[2][3]) == (2, True)


@pytest.mark.parametrize("zone", ["America/New_York"])
def test_snapshot_versions_of_a_repeated_hour_are_two(zoned: Shop, zone: str) -> None:
    """Two instants with one text in the session's zone are two versions, and the later one is current."""
    del zone
    config = "strategy: timestamp, unique_key: id, updated_at: at"
    zoned.write("snapshots/s.yml", f"snapshots: [{{name: s, relation: ref('feed'), config: {{{config}}}}}]")
    for hour in (5, 6):
        sql = f"select 1 as id, {hour} as v, timestamp '2024-11-03 0{hour}:30:00Z' as at"
        zoned.write("models/feed.sql", "{{ config(materialized='table') }} " + sql)
        zoned.dbt("build", "--select", "feed", "s")
    assert zoned.rows("select v, dbt_valid_to is null from demo.s order by v") == [(5, False), (6, True)]


@pytest.mark.parametrize("zone", ["Pacific/Auckland"])
def test_sources_in_zone_are_as_fresh_as_in_utc(zoned: Shop, zone: str) -> None:
    """A loaded_at of TIMESTAMP and the clock of UTC as TIMESTAMP_NTZ have the same age; a DATE is refused."""
    del zone
    zoned.engine.create_database("raw")
    clock = "timestampadd(microsecond, unix_micros(current_timestamp()), timestamp_ntz '1970-01-01 00:00:00')"
    for kind, sql in {
        "timestamp": "current_timestamp()",
        "timestamp_ntz": clock,
        "date": "current_date()",
    }.items():
        zoned.engine.sql(f"create table raw.{kind} as select {sql} as at")
    tables = ", ".join(f"{{name: {kind}}}" for kind in KINDS)
    limits = "loaded_at_field: at, freshness: {error_after: {count: 2, period: hour}}"
    zoned.write("models/raw.yml", f"sources: [{{name: raw, {limits}, tables: [{tables}]}}]")
    assert not zoned.try_dbt("source", "freshness")
    found = {name: one["status"] for name, one in zoned.results("sources").items()}
    assert found == {"timestamp": "pass", "timestamp_ntz": "pass"}
    assert "received value of type 'date'" in zoned.log
