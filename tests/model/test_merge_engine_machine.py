"""Merge engines and changelog producers against dicts: our commits, level 0 of others, statements, kills, compactions.

Oracle     `fold`: two versions of a row as one, by engine, in plain Python; nothing of the engine is used.
Rows       of level 0 are folded in when the next commit or compaction takes them in, in the order of their commits.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode
from tests.doses import examples
from tests.doubles.faults import SimulatedCrash, crashing, seeded_runtime
from tests.doubles.reference_model import Key, Row, content_of, freeze
from tests.unit.store.table_world import changes_of, make_table, open_table, put, rows_of
from tests.unit.store.test_changelog import foreign_level_zero

COLUMNS = {"id": "BIGINT", "total": "INT", "most": "INT", "text": "STRING", "last": "STRING"}
POINTS = ("write.data_files", "commit.manifests", "commit.claimed", "commit.done")
Fold = Callable[[Row, Row], Row]
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)


def _filled(old: Row, new: Row) -> Row:
    return {name: old[name] if new[name] is None else new[name] for name in new}


def _summed(old: Row, new: Row) -> Row:
    def both(name: str, join: Callable[..., object]) -> object:
        there = [one[name] for one in (old, new) if one[name] is not None]
        return join(*there) if len(there) == 2 else (there or [None])[0]

    return {
        **_filled(old, new),
        "total": both("total", lambda a, b: a + b),
        "most": both("most", max),
        "text": both("text", lambda a, b: f"{a},{b}"),
    }


FOLDS: Mapping[str, Fold] = {
    "deduplicate": lambda _old, new: new,
    "first-row": lambda old, _new: old,
    "partial-update": _filled,
    "aggregation": _summed,
}
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "first-row": {"deletion-vectors.enabled": "false"},
    "aggregation": {
        "fields.total.aggregate-function": "sum",
        "fields.most.aggregate-function": "max",
        "fields.text.aggregate-function": "listagg",
    },
}
TABLES = [
    (engine, producer)
    for engine in FOLDS
    for producer in ("lookup", "input", "none")
    if (engine, producer) != ("first-row", "input")  # refused, as by Paimon
]
_texts = st.one_of(st.none(), st.sampled_from("abc"))
_numbers = st.one_of(st.none(), st.integers(-3, 9))
rows = st.lists(
    st.builds(
        lambda key, total, most, text, last: dict(zip(COLUMNS, (key, total, most, text, last), strict=True)),
        st.integers(0, 9), _numbers, _numbers, _texts, _texts,
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


class MergeEngineMachine(RuleBasedStateMachine):
    """`content` is what readers see, `waiting` are rows in level 0, in the order of their commits."""

    def __init__(self) -> None:
        super().__init__()
        self.root = tempfile.mkdtemp(prefix="engines-")
        self.handles = itertools.count(1_000)
        self.identifiers = itertools.count(1)
        self.content: dict[Key, Row] = {}
        self.waiting: list[Row] = []
        self.seen: set[int] = set()

    def teardown(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root)

    @initialize(table=st.sampled_from(TABLES), levels=st.sampled_from(["4", "20"]))
    def create(self, table: tuple[str, str], levels: str) -> None:
        """Few levels compact often."""
        self.engine, self.producer = table
        self.fold = FOLDS[self.engine]
        options = {"merge-engine": self.engine, "changelog-producer": self.producer, "num-levels": levels}
        self.store: TableStore = make_table(
            self.root, columns=COLUMNS, options={**options, **OPTIONS.get(self.engine, {})},
            runtime=seeded_runtime(next(self.handles)),
        )  # fmt: skip

    def folded(self, content: Mapping[Key, Row], batch: Iterable[Row]) -> dict[Key, Row]:
        """The content after these versions."""
        made = dict(content)
        for row in batch:
            key = (row["id"],)
            made[key] = self.fold(made[key], row) if key in made else row
        return made

    def taken_in(self) -> dict[Key, Row]:
        """With the rows of level 0, which are waiting no longer."""
        made = self.folded(self.content, self.waiting)
        self.waiting = []
        return made

    def check_changes(self, after: Mapping[Key, Row], written: list[Row] | None) -> None:
        """The changes of the new snapshots together lead from the content to `after`; `written`: rows that came."""
        told = [
            change for number in self.new_snapshots() for change in changes_of(self.store, number).elements()
        ]
        if self.producer == "input" and written is not None:
            assert Counter(told) == Counter((INSERT, freeze(row)) for row in written)
        elif self.producer == "lookup":
            before = Counter(map(freeze, self.content.values()))
            before.subtract(row for kind, row in told if kind in (UPDATE_BEFORE, DELETE))
            before.update(row for kind, row in told if kind in (INSERT, UPDATE_AFTER))
            assert +before == Counter(map(freeze, after.values()))
            assert not -before
        self.content = dict(after)

    def new_snapshots(self) -> list[int]:
        """Those that no rule has looked at."""
        found = [number for number in self.store.snapshots.list_ids() if number not in self.seen]
        self.seen.update(found)
        return found

    @rule(batch=rows)
    def upsert(self, batch: list[Row]) -> None:
        """Versions in the order of their arrival."""
        after = self.folded(self.taken_in(), batch)
        put(self.store, *batch, duplicates="last")
        self.check_changes(after, batch)

    @rule(batch=rows)
    def overwrite(self, batch: list[Row]) -> None:
        """A statement says what the rows are; nothing is folded."""
        last = {(row["id"],): row for row in batch}
        self.taken_in()
        put(self.store, *last.values(), mode=WriteMode.OVERWRITE_TABLE)
        self.check_changes(last, None)

    @rule(batch=rows)
    def write_elsewhere(self, batch: list[Row]) -> None:
        """Another engine leaves rows in level 0: no reader shows them yet."""
        once = {row["id"]: row for row in batch}
        foreign_level_zero(self.store, list(once.values()), [INSERT] * len(once))
        self.waiting += once.values()
        self.new_snapshots()

    @rule(full=st.booleans())
    def compact(self, full: bool) -> None:
        """Level 0 is folded in, with its changes where they have not been told; else no row changes."""
        after = self.taken_in()
        self.store.compact(full=full)
        self.check_changes(after, [])

    @rule(batch=rows, point=st.sampled_from(POINTS), nth=st.integers(1, 2))
    def crash_while_writing(self, batch: list[Row], point: str, nth: int) -> None:
        """Killed anywhere and run again: versions are folded in once."""
        after, number = self.folded(self.taken_in(), batch), next(self.identifiers)
        job = {"commit_user": "job", "commit_identifier": number, "duplicates": "last"}
        dying = open_table(self.root, runtime=crashing(seeded_runtime(number), point, nth))
        with contextlib.suppress(SimulatedCrash):
            put(dying, *batch, **job)
        self.store = open_table(self.root, runtime=seeded_runtime(next(self.handles)))
        put(self.store, *batch, **job)
        self.check_changes(after, batch)

    @precondition(lambda self: not self.waiting and self.engine != "first-row")
    @rule(batches=st.lists(rows, min_size=2, max_size=3))
    def merge_on_read(self, batches: list[list[Row]]) -> None:
        """The same rows in level 0 of a table without deletion vectors are folded by the reader."""
        options = {"merge-engine": self.engine, "deletion-vectors.enabled": "false", "num-levels": "6"}
        with tempfile.TemporaryDirectory(prefix="merged-") as folder:
            other = make_table(folder, columns=COLUMNS, options={**options, **OPTIONS.get(self.engine, {})})
            expected: dict[Key, Row] = {}
            for batch in batches:
                once = {row["id"]: row for row in batch}
                foreign_level_zero(other, list(once.values()), [INSERT] * len(once))
                expected = self.folded(expected, once.values())
            assert content_of(rows_of(other), ("id",)) == expected

    @invariant()
    def shows_the_content(self) -> None:
        """The newest snapshot has the rows of the dict; every file invariant holds."""
        if hasattr(self, "store"):
            assert content_of(rows_of(self.store), ("id",)) == self.content
            assert self.store.verify() == ()


TestMergeEngines = MergeEngineMachine.TestCase
TestMergeEngines.settings = settings(
    max_examples=examples(3, 150),
    stateful_step_count=examples(8, 20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
