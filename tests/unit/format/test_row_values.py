"""Rows of Arrow as Python values, also beyond the years that Python's dates have."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from tablestore_engine.format.row_values import row_dicts, row_values

DAYS = pa.array([-735103, 2932897, 0, None], pa.int32()).cast(pa.date32())
TEXTS = ["-0043-05-11", "+10000-01-01", date(1970, 1, 1), None]


@pytest.mark.parametrize(("unit", "value"), [("ms", 253402318799123), ("us", 253402318799123000)])
@pytest.mark.parametrize(("zone", "mark"), [(None, ""), ("UTC", "Z"), ("America/New_York", "Z")])
def test_far_timestamp_is_text(unit: str, value: int, zone: str | None, mark: str) -> None:
    """The year has a sign, the text is in UTC if the column has a zone; the other values stay datetimes."""
    column = pa.array([value, None, 0], pa.int64()).cast(pa.timestamp(unit, zone))
    far, null, epoch = row_values(column)
    assert (far, null) == (f"+10000-01-01T04:59:59.123{mark}", None)
    assert (epoch if zone is None else epoch.astimezone(UTC).replace(tzinfo=None)) == datetime(1970, 1, 1)  # noqa: DTZ001 - a column without zone


def test_far_date_is_text_in_every_nesting() -> None:
    """Alone, in structs, lists and maps; rows keep their form."""
    assert row_values(DAYS) == TEXTS
    struct = pa.StructArray.from_arrays([DAYS], names=["d"], mask=pa.array([False, False, False, True]))
    listed = pa.ListArray.from_arrays([0, 2, 4, 4, 4], DAYS)
    mapped = pa.MapArray.from_arrays([0, 1, 2, 3, 4], pa.array(list("abcd")), DAYS)
    rows = row_dicts(pa.table({"s": struct, "l": listed, "m": mapped}))
    assert [row["s"] for row in rows] == [*({"d": text} for text in TEXTS[:3]), None]
    assert [row["l"] for row in rows] == [TEXTS[:2], TEXTS[2:], [], []]
    assert [row["m"] for row in rows] == [[pair] for pair in zip("abcd", TEXTS, strict=True)]
    assert row_dicts(pa.table({"x": [1]}).select([])) == [{}]
