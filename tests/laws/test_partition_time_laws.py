"""Laws of partition times: (values, pattern, formatter, now) → expired or not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.options import DEFAULT_FORMAT, parse_time_format
from tablestore_engine.store.expiry.partition_time import is_expired, partition_time, pick_expired_partitions
from tablestore_engine.store.retention import PartitionRule

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PYTHON = {"yyyy": "%Y", "uuuu": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
moments = st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001
separators = st.text("-/_. :,|0123456789é", max_size=2)
nows = st.integers(-(10**14), 10**14)
spans = st.integers(1, 10**14)
days = st.dates().map(str) | st.text(max_size=12) | st.none()
DT = PartitionSpec(("dt",), (parse_type("STRING"),))


def millis(moment: datetime) -> int:
    """Since 1970."""
    return (moment - EPOCH) // timedelta(milliseconds=1)


@st.composite
def formatters(draw: st.DrawFn) -> list[str]:
    """Fields of the date in any order, then of the clock as far as it goes, each with text behind it."""
    year = draw(st.sampled_from(["yyyy", "uuuu"]))
    date = draw(st.permutations([year, "MM", "dd"]))
    fields = [*date, *["HH", "mm", "ss"][: draw(st.integers(0, 3))]]
    return [word for field in fields for word in (field, draw(separators))]


@given(formatters(), moments)
def test_a_written_time_is_read_again(words: list[str], moment: datetime) -> None:
    """What a formatter writes it reads: the same moment, cut to its smallest field."""
    text = moment.strftime("".join(_PYTHON.get(word, word) for word in words))
    fields = [word for word in words if word in _PYTHON]
    cut = {"HH": "hour", "mm": "minute", "ss": "second"}
    whole = moment.replace(microsecond=0, **{name: 0 for word, name in cut.items() if word not in fields})
    assert parse_time_format("".join(words)).find_nanos(text) == millis(whole) * 10**6


@given(moments)
def test_the_default_reads_dates_and_times(moment: datetime) -> None:
    """As people and SQL write them."""
    plain = moment.replace(tzinfo=None)
    assert (
        DEFAULT_FORMAT.find_nanos(str(plain.date()))
        == millis(moment.replace(hour=0, minute=0, second=0, microsecond=0)) * 10**6
    )
    exact = (moment - EPOCH) // timedelta(microseconds=1) * 1000
    assert DEFAULT_FORMAT.find_nanos(str(plain)) == exact


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_is_a_time_or_none(pattern: str, text: str) -> None:
    """No text breaks the reading; a pattern is read or refused."""
    DEFAULT_FORMAT.find_nanos(text)
    try:
        form = parse_time_format(pattern)
    except Unsupported:
        return
    form.find_nanos(text)


@given(days, nows, spans, st.integers(0, 10**12))
def test_expired_stays_expired(day: str | None, now: int, retained: int, more: int) -> None:
    """Later, and when less is retained; NULL and what is no date never are; the time itself is not behind itself."""
    rule = PartitionRule(retained)
    time = partition_time(DT, (day,), rule)
    assert (time is None) == (day is None or DEFAULT_FORMAT.find_nanos(day) is None)
    if is_expired(time, rule, now_ms=now):
        assert time is not None
        assert is_expired(time, rule, now_ms=now + more)
        assert is_expired(time, PartitionRule(max(1, retained - more)), now_ms=now)
    if time is not None:
        edge = -(-time // 10**6) + retained
        assert not is_expired(time, rule, now_ms=time // 10**6 + retained)
        assert is_expired(time, rule, now_ms=edge + 1)


@given(moments, st.permutations(["year", "month", "day", "hour", "region"]))
def test_columns_together_are_the_time(moment: datetime, keys: list[str]) -> None:
    """A time spread over columns is that of one column, whatever their order and types, and whatever else is there."""
    words = {name: getattr(moment, name) for name in ("year", "month", "day", "hour")}
    types = tuple(parse_type("STRING" if key == "region" else "INT") for key in keys)
    spec = PartitionSpec(tuple(keys), types)
    rule = PartitionRule(1, "$year-$month-$day $hour:00:00")
    values = tuple(words.get(key) for key in keys)
    assert (
        partition_time(spec, values, rule)
        == millis(moment.replace(minute=0, second=0, microsecond=0)) * 10**6
    )
    for key in words:
        holes = tuple(None if name == key else value for name, value in zip(keys, values, strict=True))
        assert partition_time(spec, holes, rule) is None


@given(st.lists(days, max_size=30, unique=True), nows, spans, st.integers(1, 5))
def test_the_choice_is_the_oldest(found: list[str | None], now: int, retained: int, most: int) -> None:
    """Every partition goes, is left for the next time, has no time, or is young; none that goes is younger than one
    that is left; at most so many go; the order in which they were listed does not matter.
    """
    rule = PartitionRule(retained, most=most)
    listed = [DT.encode([day]) for day in found]
    assume(len(set(listed)) == len(listed))
    choice = pick_expired_partitions(DT, listed, rule, now_ms=now)
    times = {one: partition_time(DT, DT.decode(one), rule) for one in listed}
    due = [one for one, time in times.items() if is_expired(time, rule, now_ms=now)]
    assert set(choice.expired) <= set(due)
    assert len(choice.expired) == min(most, len(due))
    assert choice.left == len(due) - len(choice.expired)
    assert choice.timeless == sum(time is None for time in times.values())
    ages = [times[one] or 0 for one in choice.expired]
    assert all(left <= right for left, right in pairwise(ages))
    assert all((times[one] or 0) >= max(ages) for one in set(due) - set(choice.expired))
    assert pick_expired_partitions(DT, listed[::-1], rule, now_ms=now) == choice
