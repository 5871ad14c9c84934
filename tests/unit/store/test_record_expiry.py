"""Expiry of records: which rows go, how they leave the changelog, and what stays as it was."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import new_schema
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.expiry.record_time import check_record_rule, expired_records
from tablestore_engine.store.table_store import TableStore
from tests.doubles.faults import seeded_runtime
from tests.unit.store.table_world import changes, changes_of, make_table, put, row, rows_of

HOUR, NOW_S = 3_600, 1_700_000_000
RULE = {"record-level.expire-time": "1 h", "record-level.time-field": "n"}


def _at(seconds: int) -> Runtime:
    return replace(seeded_runtime(7), now_ms=lambda: seconds * 1000)


def _table(root: Path, **options: str) -> TableStore:
    return make_table(root, options={**RULE, **options}, runtime=_at(NOW_S))


OLD, EDGE, NEW = row(1, n=NOW_S - HOUR - 1), row(2, n=NOW_S - HOUR), row(3, n=NOW_S)
TIMELESS = row(4, n=None)


def test_expired_rows_are_deletes_of_a_compaction(tmp_path: Path) -> None:
    """Readers show an expired row until a compaction deletes it, with -D; older snapshots keep it, NULL stays."""
    store = _table(tmp_path)
    put(store, OLD, EDGE, NEW, TIMELESS)
    assert rows_of(store) == [OLD, EDGE, NEW, TIMELESS]
    report = store.compact(full=True)
    assert rows_of(store) == [EDGE, NEW, TIMELESS]
    assert rows_of(store, 1) == [OLD, EDGE, NEW, TIMELESS]
    assert changes_of(store, report.snapshot_ids[0]) == changes(("-D", OLD))
    files = store.plan_scan().files
    assert sum(file.meta.row_count for file in files) == 3
    assert store.verify() == ()
    assert store.compact(full=True).is_empty


def test_a_compaction_of_a_partition_or_without_expiry_deletes_nothing(tmp_path: Path) -> None:
    """`expires` False is asked for while a staged snapshot waits."""
    store = _table(tmp_path)
    put(store, OLD, NEW)
    store.compact(full=True, expires=False)
    assert rows_of(store) == [OLD, NEW]


def test_records_of_first_row_and_of_sums_expire(tmp_path: Path) -> None:
    """Under engines without deletion vectors and those that combine values; a key that comes again begins anew."""
    first = {"merge-engine": "first-row", "deletion-vectors.enabled": "false"}
    sums = {"merge-engine": "aggregation", "fields.n.aggregate-function": "max"}
    for name, options in {"first": first, "sums": sums}.items():
        store = _table(tmp_path / name, **options)
        put(store, OLD, NEW)
        store.compact()
        assert rows_of(store) == [NEW], name
        put(store, row(1, "b", NOW_S))
        assert rows_of(store) == [row(1, "b", NOW_S), NEW], name


_ZONED = "TIMESTAMP(3) WITH LOCAL TIME ZONE"


@pytest.mark.parametrize(
    ("type_", "expired", "kept"),
    [
        ("INT", 99, 100),
        ("BIGINT", 99, 100),
        ("BIGINT", 99, 10**12),  # milliseconds of 2001
        ("TIMESTAMP(6)", dt.timedelta(seconds=99, microseconds=999_999), dt.timedelta(seconds=100)),
        (_ZONED, dt.timedelta(seconds=99, milliseconds=999), dt.timedelta(seconds=100)),
    ],
)
def test_the_edge_is_a_whole_second(type_: str, expired: object, kept: object) -> None:
    """A row whose second is `now - expire-time` stays. From 10^12 on a BIGINT has milliseconds."""
    schema = new_schema(
        [DataField(0, "id", parse_type("INT")), DataField(1, "n", parse_type(type_))],
        primary_keys=["id"],
        options=RULE,
    )
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC if type_ == _ZONED else None)
    values = [epoch + one if isinstance(one, dt.timedelta) else one for one in (expired, kept, None)]
    rows = pa.Table.from_pylist([{"id": 1, "n": value} for value in values], schema=schema.arrow_schema())
    due = expired_records(schema, (100 + HOUR) * 1000 + 999)
    assert due is not None
    mask = due.bind(schema).mask(rows)
    assert mask.tolist() == [True, False, False]


@pytest.mark.parametrize("millis", [-2_001, -2_000, -1_999, -1_001, -1_000, -999, -1, 0, 999, 1_000, 1_001])
@pytest.mark.parametrize("oldest", [-2, -1, 0, 1, 2])
def test_seconds_before_1970_are_cut_toward_zero(millis: int, oldest: int) -> None:
    """As Java divides: -999 ms is second 0."""
    schema = new_schema(
        [DataField(0, "id", parse_type("INT")), DataField(1, "n", parse_type("TIMESTAMP(3)"))],
        primary_keys=["id"],
        options=RULE,
    )
    column = pa.array([millis], pa.int64()).cast(pa.timestamp("ms"))
    rows = pa.table({"id": pa.array([1], pa.int32()), "n": column}, schema=schema.arrow_schema())
    due = expired_records(schema, (oldest + HOUR) * 1000)
    assert due is not None
    mask = due.bind(schema).mask(rows)
    assert mask.tolist() == [int(millis / 1000) < oldest]


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ({"record-level.expire-time": "1 h"}, ("id",)),
        ({"record-level.time-field": "n"}, ("id",)),
        ({**RULE, "record-level.time-field": "gone"}, ("id",)),
        ({**RULE, "record-level.time-field": "name"}, ("id",)),
        (RULE, ()),
    ],
)
def test_a_rule_without_effect_is_refused(options: dict[str, str], keys: tuple[str, ...]) -> None:
    """Without a time field, with one that is no time, and without a key."""
    columns = pa.schema({"id": pa.int64(), "name": pa.string(), "n": pa.int32()})
    schema = new_schema(columns, primary_keys=keys, options=options)
    with pytest.raises(FixRequest, match="TS1154"):
        check_record_rule(schema, options)
