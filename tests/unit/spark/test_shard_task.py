"""One shard's publication as a value: what it reads, and that a worker does what the driver does."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import EngineBug, RetryError
from tablestore_engine.log.changes import ReadChanges, ReadState
from tablestore_engine.log.sink import FindCommit, LogPosition, PrepublishedCommit, SentChanges
from tablestore_engine.spark.shard_task import ShardTask, decode_sent, encode_task, run_task, send_shard
from tablestore_engine.store.table_store import TableStore
from tests.unit.store.table_world import make_table, put, row

Told = tuple[int, int, list[dict[str, object]]]


@dataclass
class Share:
    """Takes every bucket that is `number` modulo `of`; keeps what it is given."""

    number: int
    of: int
    behind: int = 0
    told: list[Told] = field(default_factory=list)
    counts: list[int | None] = field(default_factory=list)
    closed: int = 0

    def takes(self, bucket: int) -> bool:
        """As ChangelogShard."""
        return bucket % self.of == self.number

    def publish(
        self,
        latest_id: int,
        read_changes: ReadChanges,
        find_commit: FindCommit,
        read_state: ReadState,
        early: Mapping[int, PrepublishedCommit],
    ) -> SentChanges:
        """As ChangelogShard."""
        for snapshot_id in range(self.behind + 1, latest_id + 1):
            assert find_commit(snapshot_id) is not None
            changes = read_changes(snapshot_id)
            if changes is not None:
                self.counts.append(changes.count_rows())
                self.told += [(snapshot_id, one.bucket, one.rows.to_pylist()) for one in changes.batches]
        return SentChanges(latest_id, LogPosition("memory", str(self.told)))

    def close(self) -> None:
        """As ChangelogShard."""
        self.closed += 1


class Unhappy(Share):
    """Its log does not answer."""

    def publish(self, *_: object) -> SentChanges:  # type: ignore[override]
        """As ChangelogShard."""
        raise RetryError("TS1702", "no answer", why="-", fix="-")


def _missing() -> object:
    raise ImportError("confluent_kafka")


class NotInstalled(Share):
    """A log whose client is missing where it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        return _missing, ()


def make_history(root: Path, commits: list[list[int]]) -> TableStore:
    """A table with four buckets."""
    store = make_table(root, options={"bucket": "4", "changelog-producer": "lookup"})
    for number, ids in enumerate(commits):
        put(store, *(row(one, f"v{number}") for one in ids))
    return store


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True), min_size=1, max_size=4),
    st.integers(1, 4),
)
def test_shards_together_are_told_everything_once(
    tmp_path_factory: pytest.TempPathFactory, commits: list[list[int]], of: int
) -> None:
    """Each bucket's changes by one of them, in the order of one that is not shared; the counts are those of its own."""
    store = make_history(tmp_path_factory.mktemp("w"), commits)
    whole, parts = Share(0, 1), [Share(number, of) for number in range(of)]
    for one in (whole, *parts):
        send_shard(one, store, len(commits))
    for part in parts:
        assert part.told == [told for told in whole.told if part.takes(told[1])]
        rows = sum(len(told[2]) for told in part.told)
        assert sum(count or 0 for count in part.counts) == rows
    assert sum(len(part.told) for part in parts) == len(whole.told)


def test_a_worker_does_what_the_driver_does(tmp_path: Path) -> None:
    """Through the pickle: the table is opened anew, and the connection is given up."""
    store = make_history(tmp_path, [[1, 2, 3], [2]])
    task = ShardTask(Share(1, 2), store.fileio, store.location, store.identity, 2)
    place, data = run_task((7, encode_task(task)))
    mine = Share(1, 2)
    assert (place, decode_sent(data)) == (7, send_shard(mine, store, 2))
    task.run()
    assert isinstance(task.shard, Share)
    assert task.shard.closed == 1


def test_what_goes_wrong_crosses_as_data(tmp_path: Path) -> None:
    """Errors of ours come back as they were; a missing client as None; another table at the place is TS1365."""
    store = make_history(tmp_path, [[1]])

    def outcome(shard: Share, identity: str | None = store.identity) -> object:
        task = ShardTask(shard, store.fileio, store.location, identity, 1)
        return decode_sent(run_task((0, encode_task(task)))[1])

    failed, gone = outcome(Unhappy(0, 1)), outcome(Share(0, 1), identity="another")
    assert isinstance(failed, RetryError)
    assert failed.code == "TS1702"
    assert isinstance(gone, RetryError)
    assert gone.code == "TS1365"
    assert outcome(NotInstalled(0, 1)) is None
    with pytest.raises(EngineBug, match="TS1777"):
        decode_sent(pickle.dumps("something"))
