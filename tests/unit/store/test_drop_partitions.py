"""Partitions: dropped by a condition, overwritten by their values, of every type that a partition column can have."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.store.read.text_condition import TextCondition
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode
from tests.unit.store.table_world import acting, changes_of, make_table, open_table, put, row, rows_of


def _at(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # type: ignore[arg-type] # noqa: DTZ001


VALUES: dict[str, tuple[object, object, str]] = {
    "BOOLEAN": (True, False, "p = true"),
    "TINYINT": (-128, 127, "p < 0"),
    "SMALLINT": (-1, 1, "p = -1"),
    "INT": (0, 2**31 - 1, "p <= 0"),
    "BIGINT": (-(2**63), 5, "p < -5"),
    "DECIMAL(10, 2)": (Decimal("-1.50"), Decimal("2.00"), "p < 0"),
    "STRING": ("a/b=c é%{}[]:?*'\"\\", "plain", "p != 'plain'"),
    "VARCHAR(5)": (" x ", "y", "p < 'a'"),
    "CHAR(2)": ("a ", "b ", ""),  # no filter compares it
    "DATE": (dt.date(1969, 12, 31), dt.date(2026, 1, 1), "p < '2000-01-01'"),
    "TIME(3)": (dt.time(0, 0, 0, 1000), dt.time(23, 59, 59), ""),
    "TIMESTAMP(3)": (_at(1969, 12, 31, 23, 59, 59, 999000), _at(2026, 1, 1), "p < '2000-01-01'"),
    "TIMESTAMP(6)": (_at(2026, 1, 1, 0, 0, 0, 1), _at(2026, 1, 1), "p > '2026-01-01'"),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": (
        dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14))),
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        "p < '2026-01-01 00:00:00Z'",
    ),
}


def _table(root: Path, type_: str, keys: tuple[str, ...] = ()) -> tuple[TableStore, object, object]:
    """Two rows of one partition, one of another, one of NULL (without keys); the values as readers show them."""
    first, second, _ = VALUES[type_]
    store = make_table(root, keys=keys, partitions=("p",), columns={"id": "BIGINT", "p": type_})
    put(store, {"id": 1, "p": first}, {"id": 2, "p": first}, {"id": 3, "p": second})
    if not keys:
        put(store, {"id": 4, "p": None})
    shown = {one["id"]: one["p"] for one in rows_of(store)}
    return store, shown[1], shown[3]


def _ids(store: TableStore) -> list[object]:
    return sorted(one["id"] for one in rows_of(store))  # type: ignore[type-var]


@pytest.mark.parametrize("type_", VALUES)
def test_overwrites_of_a_partition_of_each_type(tmp_path: Path, type_: str) -> None:
    """Static: the named value's rows go, NULL's too; dynamic: those of the rows. All others stay."""
    store, first, second = _table(tmp_path, type_)
    put(store, {"id": 11, "p": first}, mode=WriteMode.OVERWRITE_STATIC, partition={"p": first})
    assert _ids(store) == [3, 4, 11]
    put(store, {"id": 14, "p": None}, mode=WriteMode.OVERWRITE_STATIC, partition={"p": None})
    assert _ids(store) == [3, 11, 14]
    put(store, {"id": 23, "p": second}, {"id": 24, "p": None}, mode=WriteMode.OVERWRITE_PARTITIONS)
    assert _ids(open_table(tmp_path)) == [11, 23, 24]
    assert {one["id"]: one["p"] for one in rows_of(store)} == {11: first, 23: second, 24: None}
    assert store.verify() == ()


@pytest.mark.parametrize("type_", [type_ for type_, (_, _, condition) in VALUES.items() if condition])
@pytest.mark.parametrize("keys", [(), ("p", "id")])
def test_partitions_of_each_type_are_dropped(tmp_path: Path, type_: str, keys: tuple[str, ...]) -> None:
    """A condition chooses the first partition; its rows are deletes in the changelog, its files go."""
    condition = VALUES[type_][2]
    store, *_ = _table(tmp_path, type_, keys)
    dry = store.expire_partitions(TextCondition(condition), dry_run=True)
    assert (len(dry.partitions), dry.rows, dry.snapshot_id) == (1, 2, None)
    report = store.expire_partitions(TextCondition(condition))
    assert (report.partitions, report.rows, report.verb) == (dry.partitions, 2, "dropped")
    assert report.snapshot_id is not None
    assert _ids(store) == [3] + [4] * (not keys)
    deleted = {kind for kind, _ in changes_of(store, report.snapshot_id)}
    assert deleted == {int(RowKind.DELETE)}
    assert {file.meta.row_count for file in store.plan_scan().files} == {1}
    assert store.expire_partitions(TextCondition(condition)).partitions == ()
    assert store.verify() == ()


def test_the_partition_of_null_is_dropped(tmp_path: Path) -> None:
    """IS NULL chooses it; a comparison never does."""
    store, *_ = _table(tmp_path, "INT")
    assert store.expire_partitions(TextCondition("p != 99")).rows == 3
    assert _ids(store) == [4]
    assert store.expire_partitions(TextCondition("p is null")).summary().startswith("1 partition dropped (p=")
    assert _ids(store) == []
    assert store.verify() == ()


def test_rows_that_come_meanwhile_go_too(tmp_path: Path) -> None:
    """Somebody appends to the partition, and to another one, while it is dropped: one goes, the other stays."""
    store, first, second = _table(tmp_path, "STRING")
    other = open_table(tmp_path)
    late = acting("commit.manifests", lambda: put(other, {"id": 8, "p": first}, {"id": 9, "p": second}))
    open_table(tmp_path, runtime=late).expire_partitions(TextCondition("p != 'plain'"))
    assert _ids(store) == [3, 4, 9]
    assert store.verify() == ()


def test_conditions_of_other_columns_are_refused(tmp_path: Path) -> None:
    """Rows, not partitions, would be meant; nothing is written. A table without partitions has none to drop."""
    store, *_ = _table(tmp_path / "a", "INT")
    plain = make_table(tmp_path / "b", keys=())
    put(plain, row(1))
    for table, condition in ((store, "id = 1"), (store, "p = 0 and id = 1"), (plain, "n = 0")):
        with pytest.raises(FixRequest, match="TS1215"):
            table.expire_partitions(TextCondition(condition))
    assert len(store.snapshots.list_ids()) == 2
