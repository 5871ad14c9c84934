"""How append tables are compacted: Java and we do it in turns, and each reads what the other left."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import Row, arrow_rows
from integration_tests.interop.schemas import schema
from tablestore_engine.errors import Unsupported
from tablestore_engine.store.expiry.done_partitions import mark_where
from tablestore_engine.store.read.text_condition import TextCondition

COLUMNS = {"id": "BIGINT", "turn": "INT", "text": "STRING"}


def _turns_of_ids(rows: list[Row]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for number, turn, _ in rows:
        found.setdefault(number, []).append(turn)
    return found


def test_both_compact_the_buckets_of_an_append_table(java: JavaPaimon, tmp_path: Path) -> None:
    """Both append, delete and compact in turns: in each reader an id, which is in one bucket, has its rows in the order
    of the appends, and the streams of both have each row once.
    """
    location, us = tmp_path / "demo.db" / "t", Ours()
    made = schema(COLUMNS, options={"bucket": "2", "bucket-key": "id", "compaction.min.file-num": "3"})
    us.create(location, made)
    stream = java.stream(location, scan__mode="from-snapshot", scan__snapshot_id="1")
    for turn in range(10):
        writer = java if turn % 3 == 2 else us
        writer.write(location, arrow_rows(made, [{"id": n, "turn": turn, "text": "x"} for n in range(6)]))
        if turn in (5, 9):
            (java if turn == 5 else us).compact(location)
    expected = {number: list(range(10)) for number in range(6)}
    assert _turns_of_ids(us.read(location)) == _turns_of_ids(java.read(location)) == expected
    assert [kind for _, kind in us.snapshots(location)].count("COMPACT") >= 3
    told = [row for _, batch in stream.poll() for _, row in batch]
    newest = us.snapshots(location)[-1][0]
    ours = [row for _, row in us.changelog(location, 0, newest)]
    assert sorted(told) == sorted(ours) == sorted((n, turn, "x") for turn in range(10) for n in range(6))
    assert us.store(location).verify() == ()


def test_both_cluster_an_append_table(java: JavaPaimon, tmp_path: Path) -> None:
    """Java reads what we sorted, and takes our run for one of its own: nothing is left to sort, until it appends."""
    location, us = tmp_path / "demo.db" / "t", Ours()
    options = {"clustering.columns": "id,text", "clustering.incremental": "true", "target-file-size": "4 kb"}
    made = schema(COLUMNS, options=options)
    us.create(location, made)
    expected = []
    for turn in range(4):
        rows = [{"id": n * 7 % 50, "turn": turn, "text": f"t{n}"} for n in range(50)]
        expected += [tuple(row.values()) for row in rows]
        us.write(location, arrow_rows(made, rows))
    us.compact(location)
    manager = java.jvm.paimon.append.cluster.IncrementalClusterManager
    assert manager(java.table(location)).createCompactUnits(True).isEmpty()
    assert sorted(java.read(location)) == sorted(us.read(location)) == sorted(expected)
    assert sorted(java.filter(location, "id", "equal", "7")) == sorted(one for one in expected if one[0] == 7)
    java.write(location, arrow_rows(made, [{"id": 1, "turn": 9, "text": "java"}]))
    assert not manager(java.table(location)).createCompactUnits(True).isEmpty()
    us.compact(location)
    assert manager(java.table(location)).createCompactUnits(True).isEmpty()
    assert sorted(java.read(location)) == sorted([*expected, (1, 9, "java")])
    assert us.store(location).verify() == ()


def test_java_reads_our_marks(java: JavaPaimon, tmp_path: Path) -> None:
    """The file of a partition that is done is one that Java reads, and marks again."""
    location, us = tmp_path / "demo.db" / "t", Ours()
    made = schema(COLUMNS, partitions=("text",))
    us.create(location, made)
    us.write(location, arrow_rows(made, [{"id": 1, "turn": 1, "text": "a b"}]))
    assert mark_where(us.store(location).context, "demo.t", TextCondition("text = 'a b'")) == ("text=a b",)
    path = java.jvm.path(location / "text=a b" / "_SUCCESS")
    first = java.jvm.paimon.partition.file.SuccessFile.fromPath(java.jvm.files, path)
    action = java.jvm.paimon.partition.actions.SuccessFileMarkDoneAction(
        java.jvm.files, java.jvm.path(location)
    )
    action.markDone("text=a b/")
    again = java.jvm.paimon.partition.file.SuccessFile.fromPath(java.jvm.files, path)
    assert again.creationTime() == first.creationTime() <= again.modificationTime()
    assert us.read(location) == java.read(location) == [(1, 1, "a b")]


def test_java_refuses_fixed_buckets_without_a_key(java: JavaPaimon, tmp_path: Path) -> None:
    """Java makes no such table, so no rule says where a row goes: neither do we, and we do not write one."""
    made = schema(COLUMNS, options={"bucket": "2"})
    with pytest.raises(Exception, match="You should define a 'bucket-key' for bucketed append mode"):
        java.create(tmp_path / "demo.db" / "theirs", made)
    with pytest.raises(Unsupported, match="TS1127") as refused:
        Ours().create(tmp_path / "demo.db" / "ours", made)
    assert "bucket-key" in str(refused.value)
