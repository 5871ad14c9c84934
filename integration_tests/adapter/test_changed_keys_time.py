"""changed_keys models that use the time: they equal a full refresh at the moment of the run, whatever changed since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta

import pytest

from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.test_changed_keys_soundness import RESTRICTED, model, put
from tablestore_engine.api import TableVersion
from tablestore_engine.api.changed_keys import ChangedKeys
from tablestore_engine.spi import MOMENT
from tests.doses import examples

SOURCES = "sources: [{name: raw, schema: demo, tables: [{name: visits}, {name: prices}, {name: nights}]}]"
VISITS, PRICES, NIGHTS = (f"{{{{ source('raw', '{name}') }}}}" for name in ("visits", "prices", "nights"))
FIRST = datetime(2026, 3, 20, 12, tzinfo=UTC)
RECENT = f"select id, amount from {VISITS} where day >= current_date() - interval 30 days"
TOTALS = (
    f"select kind, count(*) as n, sum(case when day >= date_sub(current_date(), 7) then amount end) as week "
    f"from {VISITS} where day <= current_date() group by kind"
)
VALID = (
    f"select v.id, p.price from {VISITS} v left join {PRICES} p "
    "on p.kind = v.kind and p.valid_from <= current_timestamp() and p.valid_to > current_timestamp()"
)
NEWEST = (
    f"select kind, price from (select kind, price, row_number() over (partition by kind order by valid_from desc, id) "
    f"as r from {PRICES} where valid_from <= now()) where r = 1"
)


class Clock:
    """Moments of runs: epoch milliseconds."""

    def __init__(self) -> None:
        self.now = FIRST

    def ms(self) -> int:
        """Of the next run."""
        return round(self.now.timestamp() * 1000)

    def forward(self, **by: float) -> None:
        """Later, or earlier."""
        self.now += timedelta(**by)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of runs."""
    made = Clock()
    monkeypatch.setattr(ChangedKeys, "moment_ms", lambda _: made.ms())
    return made


@pytest.fixture
def feed(shop: Shop) -> Shop:
    """Visits of a hundred days, some without a day, and prices that hold for ten days each."""
    shop.write("models/feed.yml", SOURCES)
    first = date(2026, 1, 1)
    days = [None if number % 9 == 0 else first + timedelta(days=number) for number in range(100)]
    visits = {"id": [*range(100)], "day": days, "kind": [n % 3 for n in range(100)], "amount": [*range(100)]}
    put(shop, "visits", visits)
    begin = datetime(2026, 3, 1, tzinfo=UTC)
    starts = [begin + timedelta(days=10 * (n // 3), hours=n) for n in range(12)]
    put(
        shop,
        "prices",
        {
            "id": [*range(12)],
            "kind": [n % 3 for n in range(12)],
            "price": [n * 10 for n in range(12)],
            "valid_from": starts,
            "valid_to": [one + timedelta(days=10) for one in starts],
        },
    )
    return shop


def run(shop: Shop, clock: Clock, *names: str, evaluated: str | None = None) -> None:
    """Each model is its full query at the moment of the run, and was computed in this way; None: by some keys."""
    shop.dbt("run", "--select", *names)
    for name in names:
        check(shop, clock, name)
        found = shop.response(name)
        assert found["evaluated"] == evaluated or (evaluated is None and found["evaluated"] in RESTRICTED), (
            found
        )
        assert found["moment"] == clock.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def check(shop: Shop, clock: Clock, name: str) -> None:
    """The table is what its query gives at that moment."""
    text = (shop.folder / f"target/compiled/shop/models/{name}.sql").read_text()
    wanted = shop.engine.sql(text, versions={MOMENT: TableVersion(timestamp_ms=clock.ms())}).rows
    assert Counter(shop.rows(f"select * from demo.{name}")) == Counter(tuple(row) for row in wanted), name


@pytest.mark.nightly  # by day spark/test_run_time.py; inputs and time that change together
def test_time_alone_changes_rows_and_nothing_else_is_evaluated(feed: Shop, clock: Clock) -> None:
    """No input changed: days later rows leave and enter. In the same moment, and if no row differs, nothing is written.
    The log line and run_results.json have the moment.
    """
    model(feed, "recent", RECENT)
    model(feed, "totals", TOTALS, "kind")
    run(feed, clock, "recent", "totals", evaluated="all rows")
    snapshot = feed.response("recent")["snapshot_id"]
    run(feed, clock, "recent", "totals")
    clock.forward(hours=3)
    run(feed, clock, "recent", "totals")
    assert [feed.response(name)["keys_affected"] for name in ("recent", "totals")] == [0, 0]
    assert feed.engine.table("demo.recent").latest_snapshot_id() == snapshot
    clock.forward(days=2)
    run(feed, clock, "recent", "totals", evaluated="deltas")
    assert feed.response("recent")["keys_affected"] == 2
    assert "as of 2026-03-22T15:00:00.000Z" in feed.log
    clock.forward(days=300)
    run(feed, clock, "recent", "totals")
    assert feed.rows("select * from demo.recent") == []


def test_inputs_and_time_change_together_in_joins_and_windows(feed: Shop, clock: Clock) -> None:
    """A join that asks for the time, and the newest row of each key by then, while rows change, too; also when the
    clock goes back.
    """
    made = {
        "totals": (TOTALS, "kind"),
        "valid": (VALID, "id"),
        "newest": (NEWEST, "kind"),
        "recent": (RECENT, "id"),  # by day a refresh of time that comes in, below
        "by_keys": (TOTALS, "kind"),
    }
    names = list(made)[: examples(3, 5)]
    for name, (sql, key) in ((one, made[one]) for one in names):
        more = ", changed_keys={'strategy': 'affected_keys'}" if name == "by_keys" else ""
        model(feed, name, sql, key, more)
    run(feed, clock, *names, evaluated="all rows")
    for days, visit in ((9, 70), (-20, 75), (1, 40), (0, 80), (25, 5))[: examples(2, 5)]:
        clock.forward(days=days, hours=1)
        day = (clock.now - timedelta(days=visit % 3)).date()
        put(
            feed,
            "visits",
            {"id": [visit, visit + 100], "day": [day, None], "kind": [1, 2], "amount": [500, None]},
        )
        put(
            feed,
            "prices",
            {
                "id": [visit % 12],
                "kind": [1],
                "price": [visit],
                "valid_from": [clock.now],
                "valid_to": [None],
            },
        )
        feed.engine.sql(f"delete from demo.visits where id = {visit + 1}")
        run(feed, clock, *names)


@pytest.mark.nightly  # by day a refresh of time that comes in, below
def test_full_refresh_is_compared_at_the_stored_moment(feed: Shop, clock: Clock) -> None:
    """equals_full_refresh in the run that made the rows, and in a later command, whatever time it is then."""
    model(feed, "recent", RECENT)
    feed.write("models/recent.yml", "models: [{name: recent, data_tests: [equals_full_refresh]}]")
    feed.dbt("build", "--select", "recent")
    clock.forward(days=5)
    feed.dbt("test", "--select", "recent")
    feed.dbt("build", "--select", "recent")
    clock.forward(days=400)
    put(feed, "visits", {"id": [3], "day": [clock.now.date()], "kind": [1], "amount": [1]})
    feed.dbt("test", "--select", "recent")
    feed.engine.sql("delete from demo.recent where id > 90")
    feed.dbt("test", "--select", "recent", ok=False)


@contextmanager
def zone(shop: Shop, name: str) -> Iterator[None]:
    """The session's time zone."""
    conf = shop.engine.spark.conf
    before = str(conf.get("spark.sql.session.timeZone"))
    conf.set("spark.sql.session.timeZone", name)
    yield
    conf.set("spark.sql.session.timeZone", before)


@pytest.mark.nightly  # by day spark/test_run_time.py; a changed setting
def test_time_zone_is_that_of_the_session_and_its_change_compares_all_rows(feed: Shop, clock: Clock) -> None:
    """Midnight of Tokyo, and a night in which the clocks of Berlin go forward; then another zone."""
    model(feed, "today", f"select id from {VISITS} where day = current_date()")
    model(feed, "hours", f"select id from {NIGHTS} where wall_clock > localtimestamp() - interval 3 hours")
    nights = [
        datetime(2026, 3, 27, tzinfo=UTC).replace(tzinfo=None) + timedelta(minutes=60 * n + 30)
        for n in range(72)
    ]
    put(feed, "nights", {"id": [*range(72)], "wall_clock": nights})
    with zone(feed, "Asia/Tokyo"):
        clock.now = datetime(2026, 3, 27, 14, 59, 59, tzinfo=UTC)
        run(feed, clock, "today", "hours", evaluated="all rows")
        assert feed.rows("select id from demo.today") == [(85,)]
        clock.forward(seconds=1)
        run(feed, clock, "today", "hours")
        assert feed.rows("select id from demo.today") == [(86,)]
    with zone(feed, "Europe/Berlin"):
        clock.now = datetime(2026, 3, 29, 0, 29, tzinfo=UTC)
        run(feed, clock, "today", "hours", evaluated="all rows")
        assert "setting" in feed.response("today")["fallback"]
        clock.forward(minutes=40)
        run(feed, clock, "today", "hours")
        assert feed.response("hours")["keys_affected"] == 2


@pytest.mark.nightly  # by day adapter/test_changed_keys_soundness.py: a volatile function
def test_time_as_a_column_is_refused_and_what_is_not_split_compares_all_rows(
    feed: Shop, clock: Clock
) -> None:
    """A column that is the time is another one in each run. What is not split is named as the reason. A model
    that may keep its values does not follow the time.
    """
    model(feed, "loaded", f"select id, current_timestamp() as loaded_at from {VISITS}")
    feed.dbt("run", "--select", "loaded", ok=False)
    assert "TS1871" in feed.log
    model(
        feed,
        "loaded",
        f"select id, now() as loaded_at from {VISITS}",
        more=", changed_keys={'volatile': 'allowed'}",
    )
    model(
        feed,
        "late",
        f"select v.id, p.price from {VISITS} v left join {PRICES} p on p.kind = v.kind and p.id = v.id "
        "and p.valid_to > v.day + (now() - p.valid_from)",
    )
    feed.dbt("run", "--select", "loaded", "late")
    assert feed.response("loaded").get("moment") is None
    clock.forward(days=3)
    run(feed, clock, "late", evaluated="all rows")
    assert "now() in the condition of an outer join over both sides" in feed.response("late")["fallback"]
    feed.dbt("run", "--select", "loaded")
    assert feed.response("loaded")["keys_affected"] == 0


def test_full_refresh_and_time_that_comes_into_a_query(feed: Shop, clock: Clock) -> None:
    """The moment is committed by a full refresh, by a change of the SQL, and is gone with the time."""
    model(feed, "recent", RECENT.replace("current_date()", "date'2026-03-20'"))
    feed.dbt("run", "--select", "recent")
    assert "time" not in feed.engine.table("demo.recent").positions()
    model(feed, "recent", RECENT)
    run(feed, clock, "recent", evaluated="all rows")
    clock.forward(days=4)
    feed.dbt("run", "--select", "recent", "--full-refresh")
    assert feed.engine.table("demo.recent").positions()["time"] == str(clock.ms())
    clock.forward(days=4)
    run(feed, clock, "recent")
    model(feed, "recent", RECENT.replace("current_date()", "date'2026-03-20'"))
    feed.dbt("run", "--select", "recent")
    assert "time" not in feed.engine.table("demo.recent").positions()
