"""The store hands rows of a change on before its commit, when it is told to, and brings back what was answered."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.task_outcomes import dump_receiver, load_receiver
from tablestore_engine.store.commit.commit_report import CommitReport
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.unit.store.table_world import (
    as_table,
    changes,
    changes_of,
    make_table,
    open_table,
    put,
    row,
    rows_of,
)


@dataclass
class Receiver:
    """Keeps what it gets; answers with the number of rows, None for buckets that it refuses."""

    got: list[tuple[str, int, list[dict[str, object]]]] = field(default_factory=list)
    latest: list[int | None] = field(default_factory=list)
    refuses: frozenset[int] = frozenset()
    store: TableStore | None = None

    def __call__(
        self, commit: str, bucket: int, schema: TableSchema, batches: Iterable[pa.Table]
    ) -> object | None:
        """As ReceiveRows."""
        rows = [one for batch in batches for one in batch.to_pylist()]
        assert all(set(one) == {*schema.field_names, "_ROW_KIND"} for one in rows)
        self.got.append((commit, bucket, rows))
        if self.store is not None:
            self.latest.append(self.store.snapshots.find_latest_id())
        return None if bucket in self.refuses else len(rows)


def _write(
    store: TableStore, receiver: Receiver, *rows: dict[str, object], **request: object
) -> CommitReport:
    request.setdefault("commit_user", "me")
    request.setdefault("commit_identifier", 7)
    made = WriteRequest(rows=as_table(list(rows), store.schema), early=receiver, **request)  # type: ignore[arg-type]
    return store.write(made)


def _handed(receiver: Receiver) -> list[dict[str, object]]:
    return [one for _, _, rows in receiver.got for one in rows]


def test_rows_are_handed_on_before_the_snapshot(tmp_path: Path) -> None:
    """Of each bucket its changelog rows, in their order; the report has the answers of all of them."""
    store = make_table(tmp_path, options={"bucket": "3"})
    put(store, *(row(n) for n in range(20)))
    receiver = Receiver(store=store)
    report = _write(store, receiver, *(row(n, "b") for n in range(10, 30)))
    assert report.snapshot_id == 2
    assert set(receiver.latest) == {1}
    assert {commit for commit, _, _ in receiver.got} == {"me:7"}
    handed = [(RowKind(one.pop("_ROW_KIND")).short_string, one) for one in _handed(receiver)]
    assert changes(*handed) == changes_of(store, 2)
    assert report.early is not None
    assert sorted(report.early) == sorted(len(rows) for _, _, rows in receiver.got)
    assert sum(len(rows) for _, _, rows in receiver.got) == report.changelog_rows


def test_one_bucket_that_was_not_taken_makes_the_report_say_nothing(tmp_path: Path) -> None:
    """Then all of it has to go behind the commit."""
    store = make_table(tmp_path, options={"bucket": "3"})
    assert _write(store, Receiver(refuses=frozenset([1])), *(row(n) for n in range(20))).early is None
    assert _write(store, Receiver(), *(row(n) for n in range(20)), commit_identifier=8).early is not None
    empty = _write(store, receiver := Receiver(), commit_identifier=9)
    assert (empty.early, receiver.got) == (None, [])


def test_what_waits_and_what_changes_nothing_is_not_handed_on(tmp_path: Path) -> None:
    """Staged rows, folds before a write, a compaction; rows that a lost race has made twice come twice."""
    store, receiver = make_table(tmp_path, options={"num-levels": "3"}), Receiver()
    assert _write(store, receiver, row(1), stage="s").early is None
    assert receiver.got == []
    for number in range(6):
        _write(store, receiver, row(number), commit_identifier=10 + number)
    store.compact(full=True)
    kinds = [
        store.snapshots.get(one).commit_kind for one in range(1, (store.snapshots.find_latest_id() or 0) + 1)
    ]
    assert kinds.count("COMPACT") >= 2
    assert [one["id"] for one in _handed(receiver)] == list(range(6))


def test_each_attempt_hands_its_rows_on(tmp_path: Path) -> None:
    """Another writer takes the bucket between the tasks and the claim: the report has the second attempt's answers."""
    store, other = make_table(tmp_path), open_table(tmp_path)
    put(store, row(1, "a"))

    @dataclass
    class Overtaken(Receiver):
        def __call__(self, *given: object) -> object | None:
            super().__call__(*given)  # type: ignore[arg-type]
            if len(self.got) == 1:
                put(other, row(1, "theirs"))
            return f"answer {len(self.got)}"

    receiver = Overtaken()
    report = _write(store, receiver, row(1, "mine"))
    assert report.early == ("answer 2",)
    assert [[one["name"] for one in rows] for _, _, rows in receiver.got] == [
        ["a", "mine"],
        ["theirs", "mine"],
    ]
    assert rows_of(store) == [row(1, "mine")]


def test_a_whole_overwrite_hands_deletes_on(tmp_path: Path) -> None:
    """Also those of buckets that get no row."""
    store, receiver = make_table(tmp_path, options={"bucket": "3"}), Receiver()
    put(store, *(row(n) for n in range(9)))
    _write(store, receiver, row(100), mode=WriteMode.OVERWRITE_TABLE)
    assert sorted(one["_ROW_KIND"] for one in _handed(receiver)) == [0, *[3] * 9]


def test_a_receiver_reaches_a_worker_or_is_left_out() -> None:
    """Where what it needs is not installed its rows go behind the commit, and the write is none the worse."""
    assert load_receiver(dump_receiver(None)) is None
    assert load_receiver(dump_receiver(sorted)) is sorted  # type: ignore[arg-type]
    absent = pickle.dumps(sorted).replace(b"builtins", b"buildings")
    absent = absent.replace(b"\x8c\x08", b"\x8c\x09")
    with pytest.raises(ImportError):
        pickle.loads(absent)
    assert load_receiver(absent) is None


@pytest.mark.parametrize("partitions", [(), ("n",)])
def test_rows_are_found_by_their_keys(tmp_path: Path, partitions: tuple[str, ...]) -> None:
    """At any snapshot: visible rows only, whatever order and repeats the keys come in; other keys have none."""
    keys = ("id", *partitions)
    store = make_table(tmp_path, keys=keys, partitions=partitions, options={"bucket": "2"})
    put(store, *(row(key, "a", key % 3) for key in range(50)))
    put(store, *(row(key, "b", key % 3) for key in range(0, 50, 5)))
    asked = as_table([row(key, "?", key % 3) for key in (7, 3, 7, 10, 99, 49)], store.schema).select(
        list(keys)
    )
    for number, of_ten in ((1, "a"), (2, "b")):
        found = store.find_rows(store.snapshots.get(number), asked).to_pylist()
        expected = [row(key, of_ten if key == 10 else "a", key % 3) for key in (3, 7, 10, 49)]
        assert sorted(found, key=lambda one: one["id"]) == expected
    assert store.find_rows(store.snapshots.get(2), asked.slice(0, 0)).num_rows == 0
