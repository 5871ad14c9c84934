"""Any history with expiries, cleanings and kills in it against dicts: what is left reads as it was."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tablestore_engine.errors import RetryError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.store.clone import clone_table
from tablestore_engine.store.expiry.expire_tag import delete_tag
from tablestore_engine.store.orphan_files.clean_orphans import OrphanRequest
from tablestore_engine.store.table_store import TableStore
from tests.doses import examples
from tests.doubles.faults import DyingFileIO, SimulatedCrash, seeded_runtime
from tests.unit.fileio.simulated_world import OnSimulatedStore
from tests.unit.store.expiry_world import newest, strays, visible
from tests.unit.store.table_world import Row, delete, make_table, open_table, overwrite, put, row, rows_of

Content = dict[int, Row]
ALL_ORPHANS = OrphanRequest(
    grace_ms=-(1 << 60), delete=True
)  # the clocks of tests begin anew with each handle
batches = st.dictionaries(st.integers(0, 9), st.integers(0, 3), min_size=1, max_size=5)


def listed(content: Content) -> list[Row]:
    """As `visible` shows it."""
    return sorted(content.values(), key=repr)


class ExpiryMachine(RuleBasedStateMachine):
    """`versions`, `tags`, `stages`, `clones` say what each name shows; `explained`: strays that no expiry made."""

    def __init__(self) -> None:
        super().__init__()
        self.root = self.make_root()
        self.handles = itertools.count(1_000)
        self.numbers = itertools.count(1)
        self.rows: Content = {}
        self.versions: dict[int, Content] = {}
        self.tags: dict[str, Content] = {}
        self.stages: dict[str, Content] = {}
        self.clones: dict[str, Content] = {}
        self.explained: set[str] = set()

    def make_root(self) -> str:
        """Where the table lies."""
        return tempfile.mkdtemp(prefix="expiry-")

    def files(self) -> FileIO:
        """As a new process opens them."""
        return LocalFileIO(self.root)

    def teardown(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root)

    def open(self, fileio: FileIO | None = None) -> TableStore:
        """As another process has it."""
        runtime = seeded_runtime(next(self.handles))
        return open_table(self.root, runtime=runtime, fileio=fileio or self.files())

    def dying(self, changes: int) -> DyingFileIO:
        """Files of a process that dies before so many changes of names."""
        return DyingFileIO(self.files(), seed=changes, changes_left=changes)

    @initialize(levels=st.sampled_from(["4", "20"]), buckets=st.integers(1, 2))
    def create(self, levels: str, buckets: int) -> None:
        """A table with one snapshot; few levels fold often."""
        options = {"num-levels": levels, "bucket": str(buckets), "manifest.merge-min-count": "3"}
        self.store = make_table(
            self.root,
            options=options,
            runtime=seeded_runtime(next(self.handles)),
            fileio=self.files(),
        )
        self.upsert({0: 0})

    def commit(self, content: Content) -> None:
        """New snapshots are folds with the old rows, and the last one."""
        new = [number for number in self.store.snapshots.list_ids() if number not in self.versions]
        for number in new:
            self.versions[number] = content if number == new[-1] else self.rows
        self.rows = content

    def left(self) -> None:
        """Versions that are there: a gap or an unknown one would show in `visible`."""
        ids = self.store.snapshots.list_ids()
        self.versions = {number: content for number, content in self.versions.items() if number in ids}

    def forgive(self) -> None:
        """What a rollback or a discarded stage leaves is for orphan cleaning."""
        self.explained |= strays(self.store)

    # ---- histories -----------------------------------------------------------------------------------------

    @rule(batch=batches)
    def upsert(self, batch: dict[int, int]) -> None:
        """Put rows."""
        rows = {number: row(number, f"v{next(self.numbers)}", n) for number, n in batch.items()}
        put(self.store, *rows.values())
        self.commit({**self.rows, **rows})

    @rule(batch=batches)
    def remove(self, batch: dict[int, int]) -> None:
        """Delete by key; where none is present a compaction that is due is the only snapshot."""
        delete(self.store, *({"id": number} for number in batch))
        self.commit({number: one for number, one in self.rows.items() if number not in batch})

    @rule(batch=batches)
    def refresh(self, batch: dict[int, int]) -> None:
        """A full refresh."""
        rows = {number: row(number, f"v{next(self.numbers)}", n) for number, n in batch.items()}
        overwrite(self.store, *rows.values())
        self.commit(rows)

    @rule()
    def compact(self) -> None:
        """A full compaction."""
        self.store.compact(full=True)
        self.commit(self.rows)

    @rule()
    def reopen(self) -> None:
        """Another process."""
        self.store = self.open()

    @rule(data=st.data())
    def tag(self, data: st.DataObject) -> None:
        """Name any snapshot that is there."""
        number = data.draw(st.sampled_from(sorted(self.versions)))
        name = f"t{next(self.numbers)}"
        self.store.tags.create(name, number)
        self.tags[name] = self.versions[number]

    @precondition(lambda self: self.tags)
    @rule(data=st.data())
    def untag(self, data: st.DataObject) -> None:
        """The files of a tag go with it when its snapshot has expired."""
        name = data.draw(st.sampled_from(sorted(self.tags)))
        before = strays(self.store)
        delete_tag(self.store.context, name)
        del self.tags[name]
        assert strays(self.store) <= before

    @rule(batch=batches)
    def stage(self, batch: dict[int, int]) -> None:
        """A staged snapshot, which may replace one."""
        rows = {number: row(number, f"v{next(self.numbers)}", n) for number, n in batch.items()}
        put(self.store, *rows.values(), stage="gate")
        self.commit(self.rows)
        self.stages["gate"] = {**self.rows, **rows}
        self.forgive()

    @precondition(lambda self: self.stages)
    @rule(publish=st.booleans())
    def end_stage(self, publish: bool) -> None:
        """Published when main's rows are where they were, else dropped."""
        content = self.stages.pop("gate")
        if publish:
            try:
                self.store.staging.publish("gate")
            except RetryError:
                publish = False
        self.store.staging.discard("gate")
        self.commit(content if publish else self.rows)
        self.forgive()

    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        """To any snapshot that is there; tags behind it go."""
        number = data.draw(st.sampled_from(sorted(self.versions)))
        self.store.rollback(number)
        self.tags = {name: self.tags[name] for name in self.store.tags.list_all()}
        self.left()
        self.rows = self.versions[number]
        self.forgive()

    @precondition(lambda self: len(self.clones) < 2)
    @rule()
    def clone(self) -> None:
        """The newest snapshot as a table of its own."""
        name = f"copy{next(self.numbers)}"
        clone_table(self.store.context, TableLayout(f"{self.root}/demo.db/{name}"))
        self.clones[name] = self.rows

    # ---- expiries ------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 4))
    def expire(self, count: int) -> None:
        """No file is left that was needed before and is not any more."""
        before, stages = strays(self.store), bool(self.stages)
        self.store.expire(newest(count))
        self.left()
        assert stages or len(self.versions) <= count
        assert strays(self.store) <= before | self.explained

    @rule(count=st.integers(1, 3), changes=st.integers(0, 40))
    def expire_killed(self, count: int, changes: int) -> None:
        """Killed before any change of a name; what counts is whole, and the next expiry leaves what one would have."""
        before = strays(self.store)
        fileio = self.dying(changes)
        with contextlib.suppress(SimulatedCrash):
            self.open(fileio).expire(newest(count))
        self.left()
        self.shows_the_oracle()
        self.store.expire(newest(count))
        self.left()
        assert strays(self.store) <= before | self.explained

    @rule()
    def clean(self) -> None:
        """What nobody names is gone, whoever left it; a second time there is nothing."""
        self.store.orphans(ALL_ORPHANS)
        assert strays(self.store) == set()
        assert self.store.orphans(replace(ALL_ORPHANS, delete=False)).found == ()
        self.explained = set()

    @rule(batch=batches, changes=st.integers(0, 25), staged=st.booleans())
    def write_killed(self, batch: dict[int, int], changes: int, staged: bool) -> None:
        """A writer that dies before any change of a name: his commit is there or it is not."""
        rows = {number: row(number, f"v{next(self.numbers)}", n) for number, n in batch.items()}
        fileio = self.dying(changes)
        stage = {"stage": "gate"} if staged else {}
        with contextlib.suppress(SimulatedCrash):
            put(self.open(fileio), *rows.values(), **stage)
        newest_rows = {int(str(one["id"])): one for one in rows_of(self.store)}
        assert newest_rows in (self.rows, {**self.rows, **rows})
        self.commit(newest_rows)
        if staged:
            found = self.store.staging.find("gate")
            if found is None:
                self.stages.pop("gate", None)
            else:
                shown = {int(str(one["id"])): one for one in rows_of(self.store.on_staged("gate"))}
                assert shown in (self.stages.get("gate"), {**self.rows, **rows})
                self.stages["gate"] = shown
        self.forgive()

    @rule(changes=st.integers(0, 30))
    def clean_killed(self, changes: int) -> None:
        """A cleaning that dies anywhere has taken nothing from anybody (the invariant)."""
        fileio = self.dying(changes)
        with contextlib.suppress(SimulatedCrash):
            self.open(fileio).orphans(ALL_ORPHANS)

    @precondition(lambda self: self.clones)
    @rule(data=st.data())
    def expire_clone(self, data: st.DataObject) -> None:
        """A clone goes on by itself."""
        name = data.draw(st.sampled_from(sorted(self.clones)))
        new = row(next(self.numbers), "clone")
        put(self.copy(name), new)
        self.clones[name] = {**self.clones[name], int(str(new["id"])): new}
        self.copy(name).expire(newest(1))
        assert strays(self.copy(name)) == set()

    def copy(self, name: str) -> TableStore:
        """A handle on a clone."""
        folder = f"{self.root}/demo.db/{name}"
        return TableStore(self.files(), folder, seeded_runtime(50_000 + next(self.numbers)))

    @invariant()
    def shows_the_oracle(self) -> None:
        """Every snapshot, tag, staged snapshot and clone shows what the dicts say, and nothing else is there."""
        if not self.versions:
            return
        expected = {f"snapshot {number}": listed(one) for number, one in self.versions.items()}
        expected |= {f"tag {name}": listed(one) for name, one in self.tags.items()}
        expected |= {f"staged {name}": listed(one) for name, one in self.stages.items()}
        assert visible(self.open()) == expected
        for name, content in self.clones.items():
            assert rows_of(self.copy(name)) == listed(content)


ExpiryMachine.TestCase.settings = settings(
    max_examples=examples(4, 12),
    stateful_step_count=14,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestExpiryMachine = ExpiryMachine.TestCase


class SimulatedExpiryMachine(OnSimulatedStore, ExpiryMachine):
    """The same on an object store with faults: clones are copies, and killed processes leave no temporary files."""


SimulatedExpiryMachine.TestCase.settings = settings(
    ExpiryMachine.TestCase.settings, max_examples=examples(4, 100), stateful_step_count=examples(12, 20)
)
TestSimulatedExpiryMachine = SimulatedExpiryMachine.TestCase
