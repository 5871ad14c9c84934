"""Table.scan: which values name a state, and which are refused by the fix."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablestore_engine.api import Engine, FixRequest, Table, TableSpec, WriteSpec

MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two snapshots of one row each."""
    engine = Engine(str(tmp_path))
    for number in (1, 2):
        rows = pa.table({"id": [number], "tz": pa.array([MOMENT], pa.timestamp("us", "UTC"))})
        engine.write("d.t", rows, WriteSpec(table=TableSpec(("id",))))
    return engine.table("d.t")


def test_unambiguous_values_name_a_state(table: Table) -> None:
    """Digits as text, and a datetime with a time zone."""
    assert table.scan(snapshot="1").to_arrow().num_rows == 1
    first = table.snapshots()[0].time_millis
    moment = datetime.fromtimestamp(first / 1000, UTC)
    later = datetime.now(UTC) + timedelta(days=1)
    assert table.scan(timestamp_ms=later).to_arrow().num_rows == 2
    assert table.scan(timestamp_ms=moment).plan() == table.scan(timestamp_ms=first).plan()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"snapshot": "month_end"}, "tag='"),
        ({"snapshot": True}, "whole number"),
        ({"snapshot": 1.0}, "whole number"),
        ({"timestamp_ms": datetime(2024, 1, 1)}, "with a time zone"),  # noqa: DTZ001 - what is refused
        ({"timestamp_ms": "now"}, "epoch milliseconds"),
    ],
)
def test_other_values_are_refused(table: Table, said: dict[str, object], expected: str) -> None:
    """TS1569 says what is expected."""
    with pytest.raises(FixRequest, match="TS1569") as refused:
        table.scan(**said)  # type: ignore[arg-type]
    assert expected in str(refused.value)


def test_a_naive_datetime_beside_a_zone_is_refused(table: Table) -> None:
    """TS1566, when the scan is made; with a zone it is compared."""
    naive = datetime(2023, 1, 1)  # noqa: DTZ001 - what is refused
    with pytest.raises(FixRequest, match="TS1566") as refused:
        table.scan(filter=pc.field("tz") > naive)
    assert "time zone" in refused.value.fix
    found = table.scan(filter=pc.field("tz") > naive.replace(tzinfo=UTC))
    assert found.to_arrow().num_rows == 2
