"""Flights that depart, arrive and are cancelled in a PostgreSQL all the time, while others read them.

INVARIANT  an event that failed ends the thread, and check() says so: what is counted as done was committed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import polars as pl

from tablestore_demo.demo_postgres import Postgres
from tablestore_demo.feed import DAYS, day_events

TABLE = """create table flights (
    flight_id text primary key, carrier text not null, origin text not null, dest text not null,
    scheduled_departure timestamp not null, status text not null, dep_delay integer, arr_delay integer
)"""
_PUT = """insert into flights values (%s, %s, %s, %s, %s, %s, %s, %s)
on conflict (flight_id) do update
set status = excluded.status, dep_delay = excluded.dep_delay, arr_delay = excluded.arr_delay"""
_DELETE = "delete from flights where flight_id = %s"
_COLUMNS = (
    "flight_id",
    "carrier",
    "origin",
    "dest",
    "scheduled_departure",
    "status",
    "dep_delay",
    "arr_delay",
)
_KINDS = {"c": "inserted", "u": "updated", "d": "deleted"}
_BROKEN = 20
_SIXTY_TIMES_IS_WRONG = 25  # minutes; the project's test allows a day
Event = dict[str, Any]


def _events(flights: pl.DataFrame) -> Iterator[Event]:
    for day in range(1, DAYS + 1):
        yield from day_events(flights, day).to_pylist()


def schedule(server: Postgres, flights: pl.DataFrame) -> tuple[int, Iterator[Event]]:
    """Makes the table with the flights that are announced before the first one departs; their number, and the rest."""
    events = _events(flights)
    server.run(TABLE)
    planned: list[tuple[Any, ...]] = []
    for event in events:
        if event["op"] != "c":
            events = chain([event], events)
            break
        planned.append(tuple(event[name] for name in _COLUMNS))
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany(_PUT, planned)
    return len(planned), events


class LiveFlights(threading.Thread):
    """`pause_s` between two events."""

    def __init__(self, server: Postgres, events: Iterator[Event], pause_s: float) -> None:
        super().__init__(daemon=True, name="live flights")
        self._server, self._events, self._pause_s = server, events, pause_s
        self._ended = threading.Event()
        self._counts: Counter[str] = Counter()
        self._error: Exception | None = None

    def run(self) -> None:
        """Until it is told to end, or the year is over."""
        try:
            with self._server.connect() as connection:
                for event in self._events:
                    if self._ended.wait(self._pause_s):
                        return
                    if event["op"] == "d":
                        connection.execute(_DELETE, [event["flight_id"]])
                    else:
                        connection.execute(_PUT, [event[name] for name in _COLUMNS])
                    self._counts[_KINDS[event["op"]]] += 1
        except Exception as error:  # noqa: BLE001 - told by check(), in the thread of whoever asks
            self._error = error

    def counts(self) -> Counter[str]:
        """Events that were committed so far, by kind. Raises what ended the thread."""
        if self._error is not None:
            raise self._error
        return Counter(self._counts)

    def end(self) -> Counter[str]:
        """Behind the event that is under way; then the counts are final."""
        self._ended.set()
        self.join()
        return self.counts()


def break_delays(server: Postgres) -> Sequence[str]:
    """Delays of some flights that are over, sixty times too large; the flights."""
    some = (
        f"select flight_id from flights where status = 'arrived' and dep_delay >= {_SIXTY_TIMES_IS_WRONG} "
        f"order by flight_id limit {_BROKEN}"
    )
    return [
        str(flight)
        for (flight,) in server.rows(
            f"update flights set dep_delay = dep_delay * 60 where flight_id in ({some}) returning flight_id"
        )
    ]


def mend_delays(server: Postgres, flights: Sequence[str]) -> None:
    """As they were."""
    with server.connect() as connection:
        connection.execute(
            "update flights set dep_delay = dep_delay / 60 where flight_id = any(%s)", [list(flights)]
        )
