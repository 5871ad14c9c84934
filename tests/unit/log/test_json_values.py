"""Column texts against an independent implementation: Python's json, Decimal and datetime, row by row."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixData, Unsupported
from tablestore_engine.log.json_values import json_texts
from tests.doses import cases, examples

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _fraction(nanoseconds: int) -> str:
    return f".{nanoseconds:09d}".rstrip("0").rstrip(".")


def _clock(value: int, per_second: int) -> str:
    """Text of a timestamp given as a count of units since the epoch."""
    seconds, part = divmod(value, per_second)
    whole = EPOCH + dt.timedelta(seconds=seconds)
    return f"{whole:%H:%M:%S}".join(
        (f"{whole.year:04d}-{whole.month:02d}-{whole.day:02d} ", _fraction(part * (10**9 // per_second)))
    )


def expected(value: object, kind: pa.DataType) -> str:
    """JSON text of one value, the slow and obvious way."""
    if value is None:
        return "null"
    if pa.types.is_decimal(kind):
        return f"{value:f}"
    if pa.types.is_timestamp(kind):
        per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        return json.dumps(_clock(value, per) + ("Z" if kind.tz else ""))
    if pa.types.is_time(kind):
        return json.dumps(_clock(value, 1000)[11:])
    if pa.types.is_date(kind):
        return json.dumps(value.isoformat())
    if pa.types.is_binary(kind):
        return json.dumps(base64.b64encode(value).decode())
    if pa.types.is_floating(kind) and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    return json.dumps(value)


def _parsed(text: str) -> object:
    return json.loads(text, parse_float=Decimal)


_LOW, _HIGH = -62135596800, 253402300799  # years 1 to 9999
CASES = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int16": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "string": (pa.string(), st.text()),
    "binary": (pa.binary(), st.binary()),
    "date": (pa.date32(), st.dates()),
    "decimal": (pa.decimal128(38, 10), st.decimals(-(10**28) + 1, 10**28 - 1, places=10)),
    "whole": (pa.decimal128(38, 0), st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)),
    "tiny": (pa.decimal128(38, 38), st.decimals(0, 1, places=38).filter(lambda d: d < 1)),
    "time": (pa.time32("ms"), st.integers(0, 86_399_999)),
    "seconds": (pa.timestamp("s"), st.integers(_LOW, _HIGH)),
    "millis": (pa.timestamp("ms"), st.integers(_LOW * 10**3, _HIGH * 10**3)),
    "micros": (pa.timestamp("us"), st.integers(_LOW * 10**6, _HIGH * 10**6)),
    "nanos": (pa.timestamp("ns"), st.integers(-(2**63) + 1, 2**63 - 1)),
    "zoned": (pa.timestamp("us", "UTC"), st.integers(_LOW * 10**6, _HIGH * 10**6)),
    "berlin": (pa.timestamp("ms", "Europe/Berlin"), st.integers(_LOW * 10**3, _HIGH * 10**3)),
}


@pytest.mark.parametrize("name", cases(CASES, 9))
@settings(max_examples=examples(20, 40), deadline=None)
@given(data=st.data())
def test_atomic_texts_equal_an_independent_writer(name: str, data: st.DataObject) -> None:
    """Every atomic type gives the JSON value that the slow writer gives, nulls and slices included."""
    kind, values = CASES[name]
    raw = data.draw(st.lists(st.none() | values, min_size=1, max_size=20))
    array = pa.array(raw, kind)
    start = data.draw(st.integers(0, len(raw) - 1))
    texts = json_texts(array.slice(start)).to_list()
    wanted = [expected(value, kind) for value in raw[start:]]
    assert [_parsed(t) for t in texts] == [_parsed(t) for t in wanted]
    if name != "string":  # escapes of text may differ, digits and clocks may not
        assert texts == wanted


@pytest.mark.parametrize(("kind", "width"), [(pa.float64(), 64), (pa.float32(), 32)])
@settings(max_examples=examples(20, 40), deadline=None)
@given(data=st.data())
def test_floats_read_back_bit_for_bit(kind: pa.DataType, width: int, data: st.DataObject) -> None:
    """The text of a float gives the same float again; NaN and the infinities are strings."""
    raw = data.draw(st.lists(st.floats(width=width) | st.none(), min_size=1))
    array = pa.array(raw, kind)
    back = [json.loads(text) for text in json_texts(array)]
    assert [isinstance(value, str) for value in back] == [
        value is not None and not math.isfinite(value) for value in raw
    ]
    again = pa.array([None if v is None else float(v) for v in back], pa.float64()).cast(kind)
    for one, other in zip(array.to_pylist(), again.to_pylist(), strict=True):
        assert one == other or (math.isnan(one) and math.isnan(other))
        assert one is None or math.copysign(1, one) == math.copysign(1, other) or math.isnan(one)


_NESTED = pa.list_(
    pa.struct([("a", pa.int32()), ("m", pa.map_(pa.string(), pa.list_(pa.decimal128(10, 2))))])
)


@settings(max_examples=examples(20, 40), deadline=None)
@given(data=st.data())
def test_nested_texts_equal_an_independent_writer(data: st.DataObject) -> None:
    """Arrays of rows of maps of arrays, with nulls at each level and any slice, equal Python's json."""
    cents = st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-2))
    maps = st.dictionaries(
        st.text(max_size=3), st.none() | st.lists(st.none() | cents, max_size=3), max_size=3
    )
    rows = st.fixed_dictionaries(
        {"a": st.none() | st.integers(-9, 9), "m": st.none() | maps.map(lambda m: list(m.items()))}
    )
    raw = data.draw(st.lists(st.none() | st.lists(st.none() | rows, max_size=3), min_size=1, max_size=6))
    start = data.draw(st.integers(0, len(raw) - 1))
    texts = json_texts(pa.array(raw, _NESTED).slice(start)).to_list()
    assert [_parsed(text) for text in texts] == [_plain(value) for value in raw[start:]]


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {"a": value["a"], "m": None if value["m"] is None else dict(value["m"])}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def test_keys_of_maps_are_text() -> None:
    """A map with integer keys becomes an object whose names are the digits."""
    array = pa.array([[(1, "x"), (-2, None)]], pa.map_(pa.int64(), pa.string()))
    assert json_texts(array).to_list() == ['{"1":"x","-2":null}']


def test_null_lists_that_hide_values_stay_null() -> None:
    """A null list whose offsets still cover values gives null, and its neighbours keep theirs."""
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 3], pa.int32()), pa.array([1, 2, 3]), mask=pa.array([True, False])
    )
    assert json_texts(lists).to_list() == ["null", "[3]"]


def test_chunks_and_dictionaries() -> None:
    """Chunked and dictionary-encoded columns are read as what they mean."""
    assert json_texts(pa.chunked_array([["a"], ["b", None]])).to_list() == ['"a"', '"b"', "null"]
    assert json_texts(pa.array(["x", None, "x"]).dictionary_encode()).to_list() == ['"x"', "null", '"x"']


def test_a_type_without_text_is_refused_by_name() -> None:
    """An interval has no JSON form: refused, never guessed."""
    with pytest.raises(Unsupported, match="TS1715") as caught:
        json_texts(pa.array([None], pa.month_day_nano_interval()))
    assert "month_day_nano_interval" in str(caught.value)


def test_a_timestamp_out_of_range_is_an_error() -> None:
    """A moment that has no text is refused, not published as null."""
    with pytest.raises(FixData, match="TS1716"):
        json_texts(pa.array([2**62, 0], pa.timestamp("ms")))
    with pytest.raises(FixData, match="TS1716"):
        json_texts(pa.array([-(2**31)], pa.int32()).cast(pa.date32()))
