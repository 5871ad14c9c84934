"""Rules of rows beside the merge engine, against Java Paimon: the same rows written by both mean the same.

Judge      a table that only Java writes. Each test uses one table of each of us and few commits.
"""

from __future__ import annotations

import datetime as dt
import random
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import arrow_rows, assert_same
from integration_tests.interop.schemas import schema
from tablestore_engine.errors import Unsupported
from tests.doses import cases

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


_MERGED = {
    "deduplicate": {"sequence.field": "at"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "partial-update": {"merge-engine": "partial-update", "ignore-delete": "true"},
}


@pytest.mark.parametrize("seed", cases(range(8), 1))
@pytest.mark.parametrize("engine", cases(_MERGED, 1))
def test_level_zero_is_merged_into_vectors_as_after_a_compaction(
    java: JavaPaimon, tmp_path: Path, engine: str, seed: int
) -> None:
    """Vectors and level 0, with deletion-vectors.merge-on-read: we show what Java shows after a compaction, also keys
    that were deleted before and come again late. Without the option level 0 is hidden.
    """
    options = {"deletion-vectors.enabled": "true", "bucket": "1", "num-sorted-run.compaction-trigger": "9"}
    made = schema(
        {"id": "BIGINT", "at": "INT", "v": "INT"}, keys=("id",), options={**options, **_MERGED[engine]}
    )
    chance, us, location = random.Random(f"{engine} {seed}"), Ours(), tmp_path / "w" / "demo.db" / "t"
    java.create(location, made)
    for number in range(7):
        rows = [
            {
                "id": chance.randrange(12),
                "at": chance.choice([None, *range(6)]),
                "v": chance.choice([None, 1, 5]),
            }
            for _ in range(8)
        ]
        kinds = [chance.choice(["+I", "+U", "-D"]) for _ in rows]
        fully = {"write-only": "false" if number < 4 else "true"}
        java.write(location, arrow_rows(made, rows), kinds, options=fully)
    hidden = us.read(location)
    assert_same(hidden, java.read(location), "level 0 is hidden")
    java.alter(location, ("option", "deletion-vectors.merge-on-read", "true"))
    shown = us.read(location)
    assert us.store(location).snapshots.find_latest().index_manifest is not None
    java.compact(location)
    assert_same(java.read(location), shown, "merged at read, and after a compaction")
    assert sorted(map(repr, hidden)) != sorted(map(repr, shown))
    with pytest.raises(Unsupported, match=r"TS1127.*merge on read of level 0"):
        us.write(location, arrow_rows(made, [{"id": 1, "at": 1, "v": 1}]))
