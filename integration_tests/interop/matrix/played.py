"""One table through its history by one or two writers, with the rows that it must have; and what readers make of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from integration_tests.interop.golden import play
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.matrix.draft import Draft
from integration_tests.interop.matrix.hands import BASE, BRANCH, KEPT, Hand, Inserter, OurHand
from integration_tests.interop.oracle import Oracle
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import Peer
from integration_tests.interop.rows import Change, Row, arrow_rows, assert_same, plain_rows
from integration_tests.interop.scenarios import Step
from integration_tests.interop.spark_faults import milliseconds

TAG = "kept"


class Table:
    """`past`: a snapshot and its rows; `tagged`: rows of TAG; `told`: what a table without key has appended; `put`:
    rows of overwrites.
    """

    def __init__(self, draft: Draft, location: Path) -> None:
        self.draft, self.location, self.schema = draft, location, draft.schema
        self.oracle = Oracle(self.schema, draft.rule)
        self.told = Oracle(self.schema, draft.rule)
        self.put = Oracle(self.schema, draft.rule)
        self.past: tuple[int, list[Row]] | None = None
        self.tagged: list[Row] | None = None
        self._tag_at = 0

    # -- writing

    def play(self, steps: Sequence[Step], hands: Sequence[Hand], chance: random.Random) -> None:
        """Each step by one of the hands; overwrites by the first, since Java's changelogs pass its own over."""
        evolves = any(step.schema is not None for step in steps)
        for number, step in enumerate(steps):
            is_first = number < len(hands)
            hand = hands[number % len(hands)] if is_first else chance.choice(list(hands))
            hand = hands[0] if step.overwrite is not None else hand
            self._step(hand, step)
            if number == 1 and not evolves:
                self.past = (hand.snapshots(self.location)[-1][0], self.oracle.rows())
        if any(step.upkeep == "expire" for step in steps):
            self.past = None

    def _step(self, hand: Hand, step: Step) -> None:
        if step.upkeep == "tag":
            self._tag_at = hand.snapshots(self.location)[-1][0]
            hand.tag(self.location, TAG, self._tag_at)
            self.tagged = self.oracle.rows()
        elif step.upkeep == "expire":
            hand.expire(self.location, KEPT)
        elif step.upkeep == "branch":
            self._branch(hand, step)
        else:
            play(hand, self.location, self.oracle, step)
            self.tell(step)
            self.put.apply([("+I", row) for row in step.overwrite or ()])

    def _branch(self, hand: Hand, step: Step) -> None:
        before = self.oracle.rows()
        base = hand.snapshots(self.location)[-1][0]
        hand.tag(self.location, BASE, base)
        rows = arrow_rows(self.schema, [row for _, row in step.changes])
        hand.open_branch(self.location, rows, [kind for kind, _ in step.changes])
        assert_same(before, Ours().read(self.location), "main beside a branch, ours")
        self.oracle.apply(step.changes)
        self.tell(step)
        branch = plain_rows(Ours().store(self.location).on_branch(BRANCH).read())
        assert_same(self.oracle.rows(), branch, "the branch, ours")
        hand.forward(self.location)
        if hand.name.startswith("java") and self._tag_at >= base:  # Java's fast-forward deletes it
            self.tagged = None

    def tell(self, step: Step) -> None:
        """Changes and columns, without overwrites."""
        if step.schema is not None:
            self.schema = step.schema
            self.told.evolve(step.schema)
            self.put.evolve(step.schema)
        self.told.apply(step.changes)

    def insert(self, step: Step, inserter: Inserter) -> None:
        """Upserts by an engine that has no more."""
        rows = arrow_rows(self.schema, [row for _, row in step.changes])
        inserter.insert(self.location, rows, self.schema)
        self.oracle.apply([("+I", row) for _, row in step.changes])

    # -- reading

    def check(self, reader: Peer) -> None:
        """The newest state, and a past one."""
        show = shown_by(reader, self.schema)
        expected = self.oracle.rows()
        assert_same(show(expected), reader.read(self.location), f"{reader.name}, newest")
        if self.past is not None:
            snapshot, rows = self.past
            assert_same(
                show(rows), reader.read(self.location, snapshot), f"{reader.name}, snapshot {snapshot}"
            )

    def check_tag(self, java: JavaPaimon) -> None:
        """By Java and by us."""
        if self.tagged is not None:
            assert_same(self.tagged, plain_rows(OurHand().read_tag(self.location, TAG)), "ours, the tag")
            assert_same(
                self.tagged, java.read(self.location, options={"scan.tag-name": TAG}), "java, the tag"
            )

    def check_stream(
        self, told: Sequence[tuple[int, list[Change]]], *, begins_full: bool, overwrites: bool = False
    ) -> None:
        """Changes from the first snapshot that there is, replayed, are the table.

        `begins_full`: with all rows of a later snapshot. `overwrites`: those of tables without key are in it, as in our
        streams.
        """
        producer = str(self.draft.schema.options.get("changelog-producer", ""))
        expected = self.oracle.rows()
        changes = [change for _, batch in told for change in batch]
        if not self.draft.is_keyed and begins_full:  # some rows may be gone since
            absent = Counter(expected) - Counter(row for kind, row in changes if kind == "+I")
            absent -= Counter() if overwrites else Counter(self.put.rows())
            assert_same([], list(absent.elements()), "rows that the stream lacks")
        elif not self.draft.is_keyed and not overwrites:
            assert_same(self.told.rows(), [row for _, row in changes], "rows of the stream")
        elif producer in ("none", "input"):
            upserts = {self._key(row): row for kind, row in changes if kind in ("+I", "+U")}
            newest = {self._key(row): row for row in expected}
            rule = self.draft.options.get("merge-engine") or self.draft.options.get("sequence.field")
            where = "newest values of the stream" if not rule else "newest values that nothing has merged"
            assert_same(expected, [upserts.get(key) for key in newest], where)
        else:
            assert_same(expected, _replayed(told), "the stream, replayed")

    def _key(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[self.schema.names.index(name)] for name in self.schema.keys)


def start_of_everything(java: JavaPaimon, location: Path) -> dict[str, str]:
    """Words of a stream: from Java's oldest snapshot, which is not the oldest of all after its fast-forward."""
    first = java.snapshots(location)[0][0]
    mode = "from-snapshot" if first == 1 else "from-snapshot-full"
    return {"scan__mode": mode, "scan__snapshot_id": str(first)}


def _replayed(told: Sequence[tuple[int, list[Change]]]) -> list[Row]:
    """The rows after a changelog: what is retracted was there."""
    rows: Counter[Row] = Counter()
    for number, batch in told:
        rows.update(row for kind, row in batch if kind in ("+I", "+U"))
        rows.subtract(row for kind, row in batch if kind in ("-U", "-D"))
        below = [row for row, count in rows.items() if count < 0]
        assert not below, f"snapshot {number} retracts rows that were not there: {below[:3]}"
    return list(rows.elements())


def shown_by(reader: Peer, made: Any) -> Any:
    """What the reader makes of the rows: paimon-spark 0.9.0 shows TIME as milliseconds."""
    times = [at for at, one in enumerate(made.columns) if str(one.type).startswith("TIME(")]
    if not times or not reader.name.startswith("paimon-spark"):
        return list
    return lambda rows: [
        tuple(milliseconds(v) if at in times and v is not None else v for at, v in enumerate(row))
        for row in rows
    ]
