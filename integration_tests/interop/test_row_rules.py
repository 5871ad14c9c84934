"""Rules of rows beside the merge engine, against Java Paimon: the same rows written by both mean the same.

Judge      a table that only Java writes. Each test uses one table of each of us and few commits.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import arrow_rows, assert_same
from integration_tests.interop.schemas import schema

_DEFAULTS = {
    "s": ("STRING", "'new'", "new"),
    "plain": ("VARCHAR(4)", "it''s"[:4], "it''"),
    "i": ("INT", "+7", 7),
    "b": ("BOOLEAN", "TRUE", True),
    "d": ("DECIMAL(5, 2)", "-1.005", Decimal("-1.01")),
    "f": ("FLOAT", "0.1", None),
    "x": ("DOUBLE", "1e3", 1000.0),
    "day": ("DATE", "'2024-02-29'", dt.date(2024, 2, 29)),
    "at": ("TIMESTAMP(6)", "2024-02-29 01:02:03.5", dt.datetime.fromisoformat("2024-02-29 01:02:03.5")),
}
_TIMES: dict[str, Callable[[int], Any]] = {
    "INT": lambda seconds: seconds,
    "BIGINT": lambda seconds: seconds * 1000 if seconds > 10**9 else seconds,
    "TIMESTAMP(6)": lambda seconds: dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds),  # noqa: DTZ001
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": lambda seconds: dt.datetime.fromtimestamp(seconds, dt.UTC),
}


def test_both_write_the_same_defaults(java: JavaPaimon, tmp_path: Path) -> None:
    """Java casts each text of a default to the value that we cast it to, and both store it for NULL; a table whose
    defaults Java set is written by us.
    """
    made = schema(
        {"id": "BIGINT", **{name: kind for name, (kind, *_) in _DEFAULTS.items()}},
        keys=("id",),
        options={"bucket": "1", "deletion-vectors.enabled": "true"},
    )
    location, us = tmp_path / "w" / "demo.db" / "t", Ours()
    java.create(location, made)
    java.alter(location, *[("default", name, text) for name, (_, text, _) in _DEFAULTS.items()])
    empty = dict.fromkeys(_DEFAULTS)
    java.write(location, arrow_rows(made, [{"id": 1, **empty}]), options={"write-only": "false"})
    us.write(location, arrow_rows(made, [{"id": 2, **empty}]))
    theirs, ours = sorted(java.read(location))
    assert theirs[1:] == ours[1:]
    assert [v for v in ours[1:] if not isinstance(v, float)] == [
        value for _, (_, _, value) in _DEFAULTS.items() if value is not None and not isinstance(value, float)
    ]
    assert_same([theirs, ours], us.read(location), "we read them")


def test_both_expire_the_same_records(java: JavaPaimon, tmp_path: Path) -> None:
    """The same rows in a table of each, compacted by its writer: an hour old stays or goes by seconds, milliseconds
    and timestamps alike; before that both readers show all rows.
    """
    now = int(time.time())
    rows: list[dict[str, Any]] = [
        {"id": at, "s": value} for at, value in enumerate([now, now - 1000, now - 9000, 0, None, -5])
    ]
    for kind, of in _TIMES.items():
        options = {"record-level.expire-time": "1 h", "record-level.time-field": "at", "bucket": "1"}
        made = schema({"id": "BIGINT", "at": kind}, keys=("id",), options=options)
        given = [{"id": one["id"], "at": None if one["s"] is None else of(one["s"])} for one in rows]
        us, places = Ours(), {who: tmp_path / who / "demo.db" / f"t{len(kind)}" for who in ("java", "us")}
        java.create(places["java"], made)
        java.write(places["java"], arrow_rows(made, given), options={"write-only": "true"})
        us.create(places["us"], made)
        us.write(places["us"], arrow_rows(made, given))
        assert (
            len(java.read(places["java"])) == len(us.read(places["java"])) == len(us.read(places["us"])) == 6
        )
        java.compact(places["java"])
        us.compact(places["us"])
        assert [one[0] for one in sorted(us.read(places["us"]))] == [0, 1, 4]
        assert_same(java.read(places["java"]), us.read(places["us"]), kind)
        assert_same(us.read(places["us"]), java.read(places["us"]), f"{kind}, read by Java")
