"""A partitioned table against a dict while days pass: partitions expire by day, and every change is told once."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.table_store import TableStore
from tests.doses import examples
from tests.doubles.faults import SimulatedCrash, crashing, seeded_runtime
from tests.doubles.reference_model import Frozen, freeze
from tests.unit.fileio.simulated_world import OnSimulatedStore
from tests.unit.store.table_world import Row, changes_of, make_table, open_table, put, rows_of

FIRST = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEPT = 3
NO_DAY = "none"
Place = tuple[str, int]
days = st.integers(-4, 6) | st.none()
batches = st.dictionaries(st.tuples(days, st.integers(0, 2)), st.integers(0, 3), min_size=1, max_size=6)


class PartitionExpiryMachine(RuleBasedStateMachine):
    """`rows` is the truth; `told` is what the changelogs add up to; `today` counts days since FIRST."""

    def __init__(self) -> None:
        super().__init__()
        self.root = self.make_root()
        self.numbers = itertools.count(1)
        self.rows: dict[Place, Row] = {}
        self.today = 0
        self.seen = 0
        self.told: Counter[Frozen] = Counter()

    def make_root(self) -> str:
        """Where the table lies."""
        return tempfile.mkdtemp(prefix="partitions-")

    def files(self) -> FileIO:
        """As a new process opens them."""
        return LocalFileIO(self.root)

    def teardown(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root)

    @initialize(keyed=st.booleans(), buckets=st.integers(1, 2), most=st.sampled_from(["1", "2", "100"]))
    def create(self, keyed: bool, buckets: int, most: str) -> None:
        """Partitions of days, which expire after three."""
        options = {"partition.expiration-time": f"{KEPT} d", "partition.expiration-max-num": most}
        self.keyed, self.most = keyed, int(most)
        self.store = make_table(
            self.root,
            keys=("dt", "id") if keyed else (),
            partitions=("dt",),
            columns={"dt": "STRING", "id": "BIGINT", "v": "INT"},
            options={**options, **({"bucket": str(buckets), "num-levels": "5"} if keyed else {})},
            runtime=self.runtime(),
            fileio=self.files(),
        )

    def runtime(self) -> Runtime:
        """Of a process of today."""
        now_ms = int((FIRST + timedelta(days=self.today)).timestamp() * 1000)
        return seeded_runtime(next(self.numbers), start_ms=now_ms)

    def open(self, runtime: Runtime | None = None) -> TableStore:
        """Another process."""
        return open_table(self.root, runtime=runtime or self.runtime(), fileio=self.files())

    @rule(batch=batches)
    def write(self, batch: dict[tuple[int | None, int], int]) -> None:
        """Put rows; without a key only such as are not there."""
        found: dict[Place, Row] = {}
        for (day, number), value in batch.items():
            dt = NO_DAY if day is None else str((FIRST + timedelta(days=self.today + day)).date())
            if self.keyed or (dt, number) not in self.rows:
                found[dt, number] = {"dt": dt, "id": number, "v": value}
        if found:
            put(self.open(), *found.values())
            self.rows |= found

    @rule(count=st.integers(1, 3))
    def sleep(self, count: int) -> None:
        """Days pass."""
        self.today += count

    def due(self) -> list[str]:
        """Days that are old enough, the oldest first."""
        found = {dt for dt, _ in self.rows if dt != NO_DAY}
        last = FIRST + timedelta(days=self.today - KEPT)
        return sorted(dt for dt in found if datetime.fromisoformat(dt).replace(tzinfo=UTC) < last)

    @rule()
    def expire(self) -> None:
        """The oldest go, as many as may; the dry run tells the same."""
        due = self.due()
        going = due[: self.most]
        gone = [place for place in self.rows if place[0] in going]
        told = self.open().expire_partitions(dry_run=True)
        done = self.open().expire_partitions()
        assert replace(done, snapshot_id=None) == told
        assert (done.partitions, done.left) == (tuple(f"dt={dt}" for dt in going), len(due) - len(going))
        assert (done.rows, done.timeless) == (len(gone), int(any(dt == NO_DAY for dt, _ in self.rows)))
        for place in gone:
            del self.rows[place]
        assert {str(file.partition[0]) for file in self.open().plan_scan().files} == {
            dt for dt, _ in self.rows
        }

    @rule(
        point=st.sampled_from(["write.data_files", "commit.manifests", "commit.claimed"]),
        nth=st.integers(1, 2),
    )
    def expire_killed(self, point: str, nth: int) -> None:
        """Whoever dies has dropped partitions as a whole or not at all; then it is done again."""
        going = set(self.due()[: self.most])
        with contextlib.suppress(SimulatedCrash):
            self.open(crashing(self.runtime(), point, nth)).expire_partitions()
        kept = {place: row for place, row in self.rows.items() if place[0] not in going}
        left = sorted(self.rows.values(), key=repr)
        assert rows_of(self.open()) in (left, sorted(kept.values(), key=repr))
        limit = self.open()
        while limit.expire_partitions().partitions:
            limit = self.open()
        self.rows = {place: row for place, row in self.rows.items() if place[0] not in self.due()}

    @rule()
    def compact(self) -> None:
        """Changes nothing that anybody sees."""
        self.open().compact(full=True)

    @invariant()
    def shows_the_dict(self) -> None:
        """Rows are those of the dict, and the changelogs of all snapshots add up to them."""
        if not hasattr(self, "store"):
            return
        assert rows_of(self.open()) == sorted(self.rows.values(), key=repr)
        newest = self.store.snapshots.find_latest_id() or 0
        for number in range(self.seen + 1, newest + 1):
            for (kind, row), count in changes_of(self.store, number).items():
                self.told[row] += count if kind in (0, 2) else -count
        self.seen = newest
        assert +self.told == Counter(freeze(row) for row in self.rows.values())
        assert self.open().verify() == ()


PartitionExpiryMachine.TestCase.settings = settings(
    max_examples=examples(4, 8),
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestPartitionExpiryMachine = PartitionExpiryMachine.TestCase


class SimulatedPartitionMachine(OnSimulatedStore, PartitionExpiryMachine):
    """The same on an object store with faults."""


SimulatedPartitionMachine.TestCase.settings = settings(
    PartitionExpiryMachine.TestCase.settings, max_examples=examples(5, 100)
)
TestSimulatedPartitionMachine = SimulatedPartitionMachine.TestCase
