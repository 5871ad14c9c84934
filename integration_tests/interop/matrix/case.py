"""One random table in every direction: they read ours, we read theirs, both write in turns.

Engines    Java takes every step, so it has all three directions with each table; of the engines that only insert, the
           seed picks one for the two directions in which it writes. All read ours
"""

from __future__ import annotations

import hashlib
import random
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.matrix.draft import Draft, draw
from integration_tests.interop.matrix.features import AXES
from integration_tests.interop.matrix.hands import (
    FULLY,
    Hand,
    Inserter,
    JavaHand,
    OurHand,
    PythonInserter,
    SqlInserter,
)
from integration_tests.interop.matrix.histories import plan_steps
from integration_tests.interop.matrix.outcomes import RIGHT, outcome_of
from integration_tests.interop.matrix.played import Table, start_of_everything
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import Change, assert_same
from integration_tests.interop.scenarios import Step

STREAM = "java stream"
_SHIFTED = (
    "DATE",
    "LOCAL TIME ZONE",
    "MAP",
)  # dates and times before 1582 that paimon-spark 0.9.0 writes shifted
Outcomes = dict[str, dict[str, str]]  # engine → direction → outcome


@dataclass(frozen=True)
class Engines:
    """Started once for many tables; the `inserters` read, too."""

    java: JavaPaimon
    inserters: Mapping[str, Any]

    def inserter(self, name: str) -> Inserter:
        """As a writer."""
        engine = self.inserters[name]
        return PythonInserter(engine) if name in ("pypaimon", "rust") else SqlInserter(engine)


@dataclass
class Case:
    """A seed's table; `mark` changes when the generator draws another one."""

    seed: int
    draft: Draft = field(init=False)
    steps: list[Step] = field(init=False)
    inserts: list[Step] = field(init=False)

    def __post_init__(self) -> None:
        """Drawn at once."""
        self.draft = draw(AXES, self.seed)
        self.steps = plan_steps(self.draft)
        self.inserts = plan_steps(self.draft, only_upserts=True)

    @property
    def mark(self) -> str:
        """Of the schema and the histories."""
        drawn = repr((self.draft.schema.json(), self.steps, self.inserts))
        return hashlib.sha256(drawn.encode()).hexdigest()[:10]


class CaseRun:
    """A case with all engines in a folder of its own."""

    def __init__(self, case: Case, engines: Engines, warehouse: Path) -> None:
        self._case, self._engines, self._java = case, engines, engines.java
        self._folder = warehouse / f"s{case.seed}.db"
        names = tuple(engines.inserters)
        self._inserter = names[case.seed % len(names)]
        self.outcomes: Outcomes = {name: {} for name in ("java", STREAM, *names)}

    def run(self) -> Outcomes:
        """All directions; the folder stays if something is wrong."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._they_read_ours()
        self._we_read_theirs()
        self._in_turns()
        self._we_read_inserts()
        self._insert_in_turns()
        found = [one for cells in self.outcomes.values() for one in cells.values()]
        if not any(one.startswith("wrong") for one in found):
            shutil.rmtree(self._folder, ignore_errors=True)
        return self.outcomes

    def _table(self, name: str) -> Table:
        return Table(self._case.draft, self._folder / name)

    def _chance(self) -> random.Random:
        return random.Random(self._case.seed * 31)

    def _note(self, engine: str, direction: str, *works: Callable[[], object]) -> None:
        """The first outcome that is not right."""
        found = RIGHT
        for work in works:
            found = outcome_of(work, f"{engine}, {direction}", self._case.draft.features)
            if found != RIGHT:
                break
        self.outcomes[engine][direction] = found

    def _they_read_ours(self) -> None:
        table, us = self._table("ours"), OurHand()

        def made() -> None:
            us.create(table.location, table.schema)
            table.play(self._case.steps, [us], self._chance())
            self._check_ours(table)

        written = outcome_of(made, "ours", self._case.draft.features)
        for name in self.outcomes:
            self.outcomes[name]["ours"] = written
        if written != RIGHT:
            return
        self._note("java", "ours", lambda: self._check_java(table))
        self._note(STREAM, "ours", lambda: self._check_stream(table))
        for name, engine in self._engines.inserters.items():
            self._note(name, "ours", partial(table.check, engine))

    def _we_read_theirs(self) -> None:
        table, hand = self._table("theirs"), JavaHand(self._java)

        def made() -> None:
            self._java.create(table.location, table.schema)
            table.play(self._case.steps, [hand], self._chance())

        self._note("java", "theirs", made, lambda: self._check_beside_java(table))
        self._follow("theirs", lambda: self._compare_streams(table))

    def _follow(self, direction: str, work: Callable[[], object]) -> None:
        """The stream, of a table whose rows are right."""
        batch = self.outcomes["java"][direction]
        if batch == RIGHT:
            self._note(STREAM, direction, work)
        else:
            self.outcomes[STREAM][direction] = batch

    def _in_turns(self) -> None:
        table = self._table("turns")
        hands: list[Hand] = [OurHand(), JavaHand(self._java, FULLY)]

        def made() -> None:
            hands[0].create(table.location, table.schema)
            table.play(self._case.steps, hands, self._chance())
            self._check_ours(table)

        self._note("java", "turns", made, lambda: self._check_java(table))
        self._follow("turns", lambda: self._check_stream(table))

    def _we_read_inserts(self) -> None:
        name, table = self._inserter, self._table("inserts")
        inserter = self._engines.inserter(name)

        def made() -> None:
            self._java.create(table.location, table.schema)
            for step in self._inserts(name):
                table.insert(step, inserter)
            if table.draft.is_keyed and self._hides_level_zero(table):
                self._java.compact(table.location)

        self._note(name, "theirs", made, lambda: self._check_beside_java(table))

    def _insert_in_turns(self) -> None:
        name, table, us = self._inserter, self._table("inserts_in_turns"), OurHand()
        inserter = self._engines.inserter(name)

        def made() -> None:
            us.create(table.location, table.schema)
            for number, step in enumerate(self._inserts(name)):
                if number % 2:
                    table.insert(step, inserter)
                else:
                    table.play([step], [us], self._chance())
            us.compact(table.location)
            self._check_ours(table)

        self._note(name, "turns", made, lambda: table.check(self._engines.inserters[name]))

    def _inserts(self, name: str) -> list[Step]:
        if name != "spark":
            return self._case.inserts
        made, fixed = self._case.draft.schema, {*self._case.draft.filled, *self._case.draft.values}
        shifted = [
            one.name
            for one in made.columns
            if any(word in str(one.type) for word in _SHIFTED)
            and one.name not in {*made.keys, *made.partitions, *fixed}
        ]
        return [
            Step(tuple((kind, {**row, **dict.fromkeys(shifted)}) for kind, row in step.changes))
            for step in self._case.inserts
        ]

    @staticmethod
    def _hides_level_zero(table: Table) -> bool:
        options = table.draft.options
        return (
            options.get("deletion-vectors.enabled") == "true"
            or options.get("changelog-producer") == "lookup"
            or options.get("merge-engine") == "first-row"
        )

    @staticmethod
    def _check_ours(table: Table) -> None:
        table.check(Ours())
        found = Ours().store(table.location).verify()
        assert found == (), found

    def _check_beside_java(self, table: Table) -> None:
        """By us; a difference says whether Java shows it, too."""
        try:
            self._check_ours(table)
        except AssertionError as difference:
            table.check(self._java)
            raise AssertionError(f"java agrees with the oracle; {difference}") from difference
        if table.tagged is not None:
            table.check_tag(self._java)

    def _check_java(self, table: Table) -> None:
        table.check(self._java)
        table.check_tag(self._java)
        assert self._java.count(table.location) in {None, len(table.oracle.rows())}, (
            "java's count by metadata"
        )

    def _check_stream(self, table: Table) -> None:
        words = start_of_everything(self._java, table.location)
        told = self._java.stream(table.location, columns_of_today=True, **words).poll()
        table.check_stream(told, begins_full=words["scan__mode"] != "from-snapshot")

    def _compare_streams(self, table: Table) -> None:
        """Of a table of Java: our changes are the table, and have all of Java's with their kinds; none besides, but
        those of overwrites.
        """
        words = start_of_everything(self._java, table.location)
        told = self._java.stream(table.location, columns_of_today=True, **words).poll()
        first = words["scan__mode"] == "from-snapshot"
        start = {} if first else {"snapshot_id": int(words["scan__snapshot_id"])}
        ours = Ours().follow(table.location, "earliest" if first else "from-snapshot-full", **start)
        table.check_stream(ours, begins_full=not first, overwrites=True)
        if not first and told:  # Java's rows to begin with have the retractions that lie in its files
            told[0] = (told[0][0], [change for change in told[0][1] if change[0] in ("+I", "+U")])
        theirs, own = ([_as_put(change) for _, batch in one for change in batch] for one in (told, ours))
        if any(step.overwrite is not None for step in self._case.steps):
            own = list((Counter(own) & Counter(theirs)).elements())
        assert_same(theirs, own, "our changes beside java's stream")


def _as_put(change: Change) -> Change:
    """Without +U beside +I: rows that a stream begins with have either."""
    return ("+I", change[1]) if change[0] == "+U" else change
