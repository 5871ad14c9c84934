"""The one format of moments: what is printed and what is accepted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tablestore_engine.runtime.moments import datetime_text, moment_text, parse_moment

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
