"""One table against a dict: writes, deletes, overwrites, folds, crashes, other handles, time travel, staging."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.commit.commit_report import CommitReport
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode
from tests.doses import examples
from tests.doubles.faults import SimulatedCrash, crashing, seeded_runtime
from tests.doubles.reference_model import Key, ModelTable, Row, content_of
from tests.unit.fileio.simulated_world import OnSimulatedStore
from tests.unit.store.table_world import changes_of, delete, make_table, open_table, put, rows_of

COLUMNS = {"id": "BIGINT", "dt": "STRING", "v": "INT"}
DYNAMIC = -1
POINTS = ("write.data_files", "commit.manifests", "commit.claimed", "commit.done")
rows = st.lists(
    st.builds(
        lambda number, dt, value: {"id": number, "dt": dt, "v": value},
        st.integers(0, 12),
        st.sampled_from(["x", "y"]),
        st.one_of(st.none(), st.integers(0, 3)),
    ),
    max_size=8,
    unique_by=lambda one: (one["id"], one["dt"]),
)


class TableMachine(RuleBasedStateMachine):
    """`handles` are two processes that take turns; `model` is the truth."""

    def __init__(self) -> None:
        super().__init__()
        self.root = self.make_root()
        self.handles = itertools.count(1_000)
        self.model = ModelTable(("dt", "id"))
        self.identifiers = itertools.count(1)
        self.staged: dict[Key, Row] | None = None
        self.newest: int | None = None

    def make_root(self) -> str:
        """Where the table lies."""
        return tempfile.mkdtemp(prefix="machine-")

    def files(self) -> FileIO:
        """As a new process opens them."""
        return LocalFileIO(self.root)

    def teardown(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root)

    def open(self, runtime: Runtime | None = None) -> TableStore:
        """As another process has it."""
        return open_table(
            self.root, runtime=runtime or seeded_runtime(next(self.handles)), fileio=self.files()
        )

    @initialize(
        buckets=st.sampled_from([1, 2, DYNAMIC]),
        levels=st.sampled_from(["4", "20"]),
        most=st.sampled_from([-1, 2]),
    )
    def create(self, buckets: int, levels: str, most: int) -> None:
        """A partitioned keyed table; few levels fold often. Dynamic buckets are small, with and without a maximum."""
        self.store = make_table(
            self.root,
            keys=("dt", "id"),
            partitions=("dt",),
            columns=COLUMNS,
            options={
                "bucket": str(buckets),
                "num-levels": levels,
                "manifest.merge-min-count": "4",
                "dynamic-bucket.target-row-num": "3",
                "dynamic-bucket.max-buckets": str(most),
            },
            runtime=seeded_runtime(next(self.handles)),
            fileio=self.files(),
        )

    def committed(self, report: CommitReport, content: dict[Key, Row]) -> None:
        """The report names the snapshot that shows the content; folds before it show what was there."""
        if report.snapshot_id is None:
            assert content == self.model.rows
            return
        before, counted = self.newest, self.model.rows
        for number in self.store.snapshots.list_ids():
            if number not in self.model.versions:
                self.model.commit(content if number == report.snapshot_id else counted, number)
        self.model.rows, self.newest = dict(content), report.snapshot_id
        if before != report.snapshot_id and content != counted:
            previous = report.snapshot_id - 1 or None
            assert changes_of(self.store, report.snapshot_id) == self.model.changes(
                previous, report.snapshot_id
            )

    @rule(batch=rows)
    def upsert(self, batch: list[Row]) -> None:
        """Put rows; equal rows are updates too, so that only changed content is compared with the changelog."""
        changed = [one for one in batch if self.model.rows.get(self.model.key_of(one)) != one]
        self.committed(put(self.store, *changed), self.model.upserted(changed))

    @rule(batch=rows)
    def remove(self, batch: list[Row]) -> None:
        """Delete by key, present or not."""
        self.committed(
            delete(self.store, *batch), self.model.deleted(self.model.key_of(one) for one in batch)
        )

    @rule(batch=rows)
    def overwrite(self, batch: list[Row]) -> None:
        """Full refresh."""
        content = {self.model.key_of(one): one for one in batch}
        self.committed(put(self.store, *batch, mode=WriteMode.OVERWRITE_TABLE), content)

    @rule(batch=rows)
    def overwrite_partitions(self, batch: list[Row]) -> None:
        """Dynamic partition overwrite."""
        days = {one["dt"] for one in batch}
        kept = {key: one for key, one in self.model.rows.items() if one["dt"] not in days}
        report = put(self.store, *batch, mode=WriteMode.OVERWRITE_PARTITIONS)
        self.committed(report, {**kept, **{self.model.key_of(one): one for one in batch}})

    @precondition(lambda self: not self.store.schema.has_dynamic_buckets)
    @rule(buckets=st.integers(1, 4))
    def rescale(self, buckets: int) -> None:
        """Another number of buckets changes no row."""
        self.store.rescale(buckets)
        for number in self.store.snapshots.list_ids():
            if number not in self.model.versions:
                self.model.commit(self.model.rows, number)
                self.newest = number

    @rule()
    def compact(self) -> None:
        """A full compaction changes no row."""
        self.store.compact(full=True)
        for number in self.store.snapshots.list_ids():
            if number not in self.model.versions:
                self.model.commit(self.model.rows, number)
                self.newest = number

    @rule()
    def reopen(self) -> None:
        """Another process takes over."""
        self.store = self.open()

    @rule(batch=rows, point=st.sampled_from(POINTS), nth=st.integers(1, 2))
    def crash_while_writing(self, batch: list[Row], point: str, nth: int) -> None:
        """Die anywhere, reopen, run the same command again: it is there once."""
        identifier = next(self.identifiers)
        changed = [one for one in batch if self.model.rows.get(self.model.key_of(one)) != one]
        dying = self.open(crashing(seeded_runtime(identifier), point, nth))
        with contextlib.suppress(SimulatedCrash):
            put(dying, *changed, commit_user="job", commit_identifier=identifier)
        self.store = self.open()
        report = put(self.store, *changed, commit_user="job", commit_identifier=identifier)
        self.committed(report, self.model.upserted(changed))

    @precondition(lambda self: self.newest is not None)
    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        """Any old snapshot reads as it was."""
        number = data.draw(st.sampled_from(sorted(self.model.versions)))
        assert content_of(rows_of(self.store, number), self.model.keys) == self.model.versions[number]

    @precondition(lambda self: self.newest is not None)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        """An earlier snapshot becomes the newest; the staged one is void."""
        number = data.draw(st.sampled_from(sorted(self.model.versions)))
        self.store.rollback(number)
        self.model.roll_back(number)
        self.newest = number

    @precondition(lambda self: self.newest is not None)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        """The rows of an earlier snapshot become the newest one, with the changes that lead there.

        Of those with as many buckets as today: others are refused (TS1343).
        """
        known = {number: self.store.snapshots.get(number) for number in sorted(self.model.versions)}
        buckets = {
            number: self.store.context.schemas.get(one.schema_id).bucket_count
            for number, one in known.items()
        }
        fitting = [number for number in known if buckets[number] == self.store.schema.bucket_count]
        number = data.draw(st.sampled_from(fitting))
        try:
            report = self.store.restore(known[number])
        except FixRequest as refused:  # a key that an overwrite had forgotten came back into another bucket
            if not self.store.schema.has_dynamic_buckets or refused.code != "TS1343":
                raise
            return
        self.committed(report, dict(self.model.versions[number]))

    @rule(batch=rows)
    def stage(self, batch: list[Row]) -> None:
        """Stage an upsert; main stays."""
        changed = [one for one in batch if self.model.rows.get(self.model.key_of(one)) != one]
        if not changed:
            return  # nothing to stage
        put(self.store, *changed, stage="gate", properties={"p": "1"})
        for number in self.store.snapshots.list_ids():  # folds before it
            if number not in self.model.versions:
                self.model.commit(self.model.rows, number)
                self.newest = number
        self.staged = self.model.upserted(changed)
        self.staged_on = self.store.latest()

    @precondition(lambda self: self.staged is not None)
    @rule()
    def publish(self) -> None:
        """Published exactly if main is where it was."""
        try:
            report = self.store.staging.publish("gate")
        except RetryError:
            assert self.store.latest() != self.staged_on
            self.store.staging.discard("gate")
        else:
            assert self.staged is not None
            self.committed(report, self.staged)
        self.staged = None

    @invariant()
    def shows_the_model(self) -> None:
        """The newest snapshot has exactly the rows of the dict; every file invariant holds."""
        store: TableStore | None = getattr(self, "store", None)
        if store is None:
            return
        assert content_of(rows_of(store), self.model.keys) == self.model.rows
        assert store.verify() == ()
        assert store.snapshots.find_latest_id() == self.newest


TestTable = TableMachine.TestCase
TestTable.settings = settings(
    max_examples=examples(4, 15),
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)


class SimulatedTableMachine(OnSimulatedStore, TableMachine):
    """The same laws on an object store: requests fail, answers are lost or late, lists are slow."""


TestSimulatedTable = SimulatedTableMachine.TestCase
TestSimulatedTable.settings = settings(
    TestTable.settings, max_examples=examples(4, 100), stateful_step_count=examples(12, 20)
)
