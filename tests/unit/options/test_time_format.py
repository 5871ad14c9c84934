"""Times in texts as Java reads them, and what is refused instead of being read another way."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tablestore_engine.errors import FixRequest, TablestoreError, Unsupported
from tablestore_engine.options import DEFAULT_FORMAT, check_options, parse_time_format

DAY_SECONDS = 86_400


def seconds(*parts: int) -> int:
    """Of a UTC moment."""
    return int(datetime(*parts, tzinfo=UTC).timestamp())  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyyMMdd", "20260131", seconds(2026, 1, 31)),
        ("uuuuMMddHH", "2026013107", seconds(2026, 1, 31, 7)),
        ("ddMMyyyy", "31012026", seconds(2026, 1, 31)),
        ("yyyy-MM-dd HH:mm:ss", "2026-01-31 01:02:03", seconds(2026, 1, 31, 1, 2, 3)),
        ("yyyy-MM-dd'T'HH:mm", "2026-01-31T01:02", seconds(2026, 1, 31, 1, 2)),
        ("'day '''dd.MM.yyyy", "day '31.01.2026", seconds(2026, 1, 31)),
        ("yyyy-M-d H", "2026-1-31 7", seconds(2026, 1, 31, 7)),
        ("yyyy-M-d", "2026-01-00031", seconds(2026, 1, 31)),
        ("yyyyMMdd", "20260231", seconds(2026, 2, 28)),  # smart: the last day of a shorter month
        ("yyyyMMdd", "20240231", seconds(2024, 2, 29)),
        ("yyyyMMdd HH", "20260131 24", seconds(2026, 2, 1)),  # the end of a day
        ("yyyyMMdd", "20260132", None),
        ("yyyyMMdd", "20261301", None),
        ("yyyyMMdd", "00000101", None),
        ("yyyyMMdd", "120260131", None),
        ("yyyyMMdd", "2026131", None),
        ("yyyyMMdd", "2026-01-31", None),
        ("yyyyMMdd", "20260131 ", None),
        ("yyyyMMdd", "", None),
        ("yyyyMMdd", "２０２６０１３１", None),  # digits, but not Java's
        ("yyyyMMdd HH:mm", "20260131 24:01", None),
        ("yyyyMMdd HH:mm", "20260131 23:60", None),
    ],
)
def test_a_pattern_reads_what_java_reads(pattern: str, text: str, expected: int | None) -> None:
    """Fields by their width, short months and midnight smartly; anything else is no time."""
    found = parse_time_format(pattern).find_nanos(text)
    assert found == (None if expected is None else expected * 10**9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31", seconds(2026, 1, 31)),
        ("2026-1-3", seconds(2026, 1, 3)),
        ("2026-01-31 01:02:03", seconds(2026, 1, 31, 1, 2, 3)),
        ("2026-1-3 1:2:3", seconds(2026, 1, 3, 1, 2, 3)),
        ("2026-02-31", seconds(2026, 3, 3)),  # lenient: days go on in the next month
        ("2026-13-01", seconds(2027, 1, 1)),
        ("2026-01-31 25:00:00", seconds(2026, 2, 1, 1)),
        ("10000-01-01", seconds(9999, 12, 31) + DAY_SECONDS),
        ("2026-01-31T01:02:03", None),
        ("2026-01-31 01:02", None),
        ("20260131", None),
        ("-2026-01-31", None),
        ("2000000000-01-01", None),
        ("yesterday", None),
    ],
)
def test_without_a_pattern_dates_and_times_are_read(text: str, expected: int | None) -> None:
    """Paimon's default: leniently, in one of two forms."""
    assert DEFAULT_FORMAT.find_nanos(text) == (None if expected is None else expected * 10**9)


def test_fractions_count() -> None:
    """Up to nine digits."""
    whole = seconds(2026, 1, 31, 1, 2, 3) * 10**9
    assert DEFAULT_FORMAT.find_nanos("2026-01-31 01:02:03.5") == whole + 500_000_000
    assert DEFAULT_FORMAT.find_nanos("2026-01-31 01:02:03.000000001") == whole + 1
    assert DEFAULT_FORMAT.find_nanos("2026-01-31 01:02:03.0000000001") is None


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("YYYYMMdd", "'YYYY'"),
        ("yyMMdd", "'yy'"),
        ("yyyyMMMdd", "'MMM'"),
        ("yyyyMMdd hh", "'hh'"),
        ("yyyyMMdd HH:mm:ss.SSS", "'SSS'"),
        ("yyyyMMdd[ HH]", "'['"),
        ("yyyyMMddE", "'E'"),
        ("yyyyMMdd'", "quote"),
        ("yyyyMM", "day"),
        ("HH:mm", "year"),
        ("yyyyMMdd mm", "hour"),
        ("yyyyMMdd HH ss", "minute"),
        ("yyyyMMdd dd", "day twice"),
        ("yyyyMd", "'M'"),
        ("yyyy-M'7'-dd", "'M'"),
        ("", "year"),
    ],
)
def test_what_is_not_read_is_refused_by_name(pattern: str, named: str) -> None:
    """With the whole pattern and what in it is meant, when the option is set."""
    with pytest.raises(Unsupported, match="TS1136") as refused:
        check_options({"partition.timestamp-formatter": pattern})
    assert repr(pattern) in refused.value.what
    assert named in refused.value.why


@pytest.mark.parametrize(
    ("key", "text", "code"),
    [
        ("partition.expiration-strategy", "update-time", "TS1137"),
        ("partition.expiration-strategy", "never", "TS1007"),
        ("partition.expiration-time", "soon", "TS1001"),
        ("partition.expiration-time", "0 ms", "TS1008"),
        ("partition.expiration-max-num", "0", "TS1008"),
        ("partition.expiration-batch-size", "5", "TS1161"),
        ("end-input.check-partition-expire", "true", "TS1161"),
        ("partition.expiration-times", "7 d", "TS1006"),
        ("partition.expiration-retain-latest", "true", "TS1006"),
    ],
)
def test_options_of_expiry_are_read_or_refused(key: str, text: str, code: str) -> None:
    """None of them is stored without an effect."""
    with pytest.raises(TablestoreError) as refused:
        check_options({key: text})
    assert refused.value.code == code
    assert isinstance(refused.value, FixRequest | Unsupported)
