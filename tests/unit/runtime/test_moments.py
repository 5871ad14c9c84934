"""The one format of moments: what is printed and what is accepted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.moments import (
    datetime_text,
    epoch_millis,
    moment_text,
    parse_moment,
    read_zone,
)

MILLIS = 1_706_702_400_005


@pytest.fixture(params=["UTC", "Asia/Kathmandu"])
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
    assert os.environ.get("TZ") != "Asia/Kathmandu"


@pytest.mark.usefixtures("_zone")
def test_a_moment_is_utc_with_milliseconds_in_every_zone() -> None:
    """The machine's time zone has no effect, on output and on input; what is printed is read back."""
    assert moment_text(MILLIS) == "2024-01-31T12:00:00.005Z"
    assert moment_text(-1) == "1969-12-31T23:59:59.999Z"
    assert parse_moment(moment_text(MILLIS)) == MILLIS
    assert parse_moment("2024-01-31T12:00:00.005") == MILLIS
    assert parse_moment("2024-01-31T17:45:00.005+05:45") == MILLIS
    assert parse_moment(f" {MILLIS} ") == MILLIS
    assert parse_moment("2024-01-31") == parse_moment("2024-01-31T00:00Z")


def test_values_of_columns_keep_their_digits() -> None:
    """A value with a zone is in UTC with Z; one without has none."""
    assert datetime_text(datetime(2024, 1, 31, 12, 0, 0, 5, UTC)) == "2024-01-31T12:00:00.000005Z"
    east = timezone(timedelta(hours=1))
    assert datetime_text(datetime(2024, 1, 31, 12, tzinfo=east)) == "2024-01-31T11:00:00Z"
    assert datetime_text(datetime.fromisoformat("2024-01-31T12:00:00")) == "2024-01-31T12:00:00"


def test_what_is_no_moment_is_refused() -> None:
    """A word, an empty text, a day that does not exist."""
    for text in ("yesterday", "", "2024-02-30"):
        with pytest.raises(ValueError):
            parse_moment(text)


def test_milliseconds_of_every_moment_are_exact() -> None:
    """No millisecond is lost to a float, also before 1970; a time without a zone is in the given one."""
    start = datetime(2024, 1, 1, tzinfo=UTC)
    for millis in range(1000):
        assert epoch_millis(start + timedelta(milliseconds=millis)) == 1_704_067_200_000 + millis
    assert epoch_millis(datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)) == -1
    berlin = ZoneInfo("Europe/Berlin")
    assert epoch_millis(datetime.fromisoformat("2024-07-01"), berlin) == parse_moment("2024-06-30T22:00Z")


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("Asia/Kolkata", ZoneInfo("Asia/Kolkata")),
        ("+05:30", timezone(timedelta(hours=5, minutes=30))),
        ("GMT-3", timezone(timedelta(hours=-3))),
        ("Z", UTC),
    ],
)
def test_zone_as_spark_names_it_is_read(name: str, zone: tzinfo) -> None:
    """Regions and offsets, as they may stand in spark.sql.session.timeZone."""
    assert read_zone(name) == zone


def test_unknown_zone_is_refused() -> None:
    """Another one, UTC say, would move every time without an offset."""
    with pytest.raises(FixRequest, match="TS2155"):
        read_zone("Mars/Olympus")
