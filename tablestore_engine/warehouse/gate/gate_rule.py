"""Which staged snapshots may be published: the one rule of dbt, Python and the command line. Pure, no I/O.

CHANGE     when a staged snapshot may be published
Terms      a version is `user:identifier` of the commit that made the rows: publishing and folding keep it.
Rule       1 every gate has an outcome that counts, all of these are green
           2 an outcome counts for a staged snapshot if the test read that very snapshot, or not its table at all;
             a test that read the table only at versions that it names itself abstains: it is no gate of it
           3 staged snapshots that one such test read go out together or not at all
           4 what else it read must be what readers see when the group is out
           5 what the rows were built from is out, or goes out before them in the group: a test of a parent and of
             what is built from it at some distance takes what lies between into the group
INVARIANT  what readers see after a group is out is what its green tests read: property test in
           tests/laws/test_gate_laws.py.
CRASH      the rule needs nothing but what lies beside the staged snapshots: a group of which some are out is
           finished by the next one who asks (rule 4 finds the others visible), or refused if readers see other rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tablestore_engine.catalog.read_log import TableRead
from tablestore_engine.store.metadata.commit_history import NO_ROWS
from tablestore_engine.warehouse.gate.failing_rows import FailingRows


class Verdict(StrEnum):
    GREEN = "green"
    RED = "red"
    ERROR = "error"


@dataclass(frozen=True)
class Outcome:
    """`reads`: tables that the test read by their plain names; `constants`: by a version that it names itself.

    `failing`: sample rows for people. The rule does not look at them.
    """

    test: str
    verdict: str
    reads: tuple[TableRead, ...] = ()
    constants: tuple[TableRead, ...] = ()
    failing: FailingRows | None = None

    def is_about(self, staged: Staged) -> bool:
        """Rule 2."""
        own = _versions_of(self.reads, staged.table)
        return own == {staged.version} if own else not self.abstains_from(staged)

    def abstains_from(self, staged: Staged) -> bool:
        """Rule 2: whatever will be published, it says the same. One that could not run might have read more."""
        own, named = _versions_of(self.reads, staged.table), _versions_of(self.constants, staged.table)
        is_elsewhere = not own and bool(named) and staged.version not in named
        return is_elsewhere and self.verdict != Verdict.ERROR

    def holds_back(self, group: Collection[Staged]) -> bool:
        """Rules 1 and 2: it is not green, and not all of these can do without it."""
        return self.verdict != Verdict.GREEN and not all(self.abstains_from(one) for one in group)


def _versions_of(reads: tuple[TableRead, ...], table: str) -> set[str]:
    return {read.version for read in reads if read.table == table}


@dataclass(frozen=True)
class Staged:
    """A snapshot that nobody sees yet. `owner` is who made it (a dbt node), `policy` manual waits to be asked.

    `is_out`: it is the table's own snapshot already, and its log waits. `is_beside`: it is a table of its own, which
    takes the place of what has the name. `batches`: intervals of a microbatch. `written_ms`: of its newest commit;
    `used_ms`: of that or a later test; `kept_ms`: its retention, None without end.
    """

    table: str
    name: str
    version: str
    snapshot: int = 0
    owner: str = ""
    policy: str = "auto"
    gates: tuple[str, ...] = ()
    parents: tuple[TableRead, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    is_out: bool = False
    is_beside: bool = False
    batches: tuple[str, ...] = ()
    written_ms: int = 0
    used_ms: int = 0
    kept_ms: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Table and name: a table may have several, of which one can go out."""
        return self.table, self.name

    @property
    def as_read(self) -> TableRead:
        """What a query that sees it has read."""
        return TableRead(self.table, self.version, self.snapshot, self.name)

    @property
    def counted(self) -> Mapping[str, Outcome]:
        """Outcomes by test, as far as they are about these rows."""
        return {one.test: one for one in self.outcomes if one.is_about(self)}

    @property
    def abstained(self) -> frozenset[str]:
        """Tests that read other versions of the table only, by name."""
        return frozenset(one.test for one in self.outcomes if one.abstains_from(self))

    @property
    def red_gates(self) -> tuple[str, ...]:
        """Tests that said no to these rows."""
        return tuple(test for test, one in self.counted.items() if one.verdict != Verdict.GREEN)

    @property
    def missing_gates(self) -> tuple[str, ...]:
        """Gates that have not said anything about these rows."""
        return tuple(gate for gate in self.gates if gate not in self.counted and gate not in self.abstained)

    @property
    def is_green(self) -> bool:
        """All gates spoke, and none said no."""
        return not self.red_gates and not self.missing_gates

    @property
    def bound_reads(self) -> tuple[tuple[str, TableRead], ...]:
        """(test, other rows that it read) of the outcomes that count."""
        return tuple(
            (one.test, read)
            for one in self.counted.values()
            for read in one.reads
            if read.table != self.table
        )

    def takes(self, outcome: Outcome) -> bool:
        """Whether it matters here; what a test said of these rows is not taken back by abstaining."""
        return outcome.is_about(self) or (outcome.abstains_from(self) and outcome.test not in self.counted)

    def with_outcome(self, outcome: Outcome) -> Staged:
        """The same with one more, or newer, outcome; one that says nothing of these rows changes nothing."""
        if not self.takes(outcome):
            return self
        others = {one.test: one for one in self.outcomes}
        others[outcome.test] = outcome
        return replace(self, outcomes=tuple(others[test] for test in sorted(others)))


@dataclass(frozen=True)
class World:
    """`current`: table -> version that readers see. `past`: (table, version) of parents that were published."""

    current: Mapping[str, str] = field(default_factory=dict)
    past: frozenset[tuple[str, str]] = frozenset()

    def visible(self, table: str) -> str:
        """What a reader of the plain name gets."""
        return self.current.get(table, NO_ROWS)


@dataclass(frozen=True)
class GateBook:
    """Staged snapshots, each (table, name) once."""

    staged: tuple[Staged, ...] = ()

    def find(self, read: TableRead) -> Staged | None:
        """The staged snapshot that a query has read."""
        return next((one for one in self.staged if _is_same(one, read)), None)

    def of_table(self, table: str) -> tuple[Staged, ...]:
        return tuple(one for one in self.staged if one.table == table)

    def with_added(self, item: Staged) -> GateBook:
        """One more, or the same with other outcomes."""
        return GateBook((*(one for one in self.staged if one.key != item.key), item))

    def without(self, *items: Staged) -> GateBook:
        """After publishing."""
        gone = {item.key for item in items}
        return GateBook(tuple(one for one in self.staged if one.key not in gone))

    def with_children(self, item: Staged) -> tuple[Staged, ...]:
        """The snapshot and all staged rows that were built from it, at any depth."""
        found = {item.key: item}
        while more := {
            one.key: one
            for one in self.staged
            if one.key not in found and any(_is_same(old, p) for old in found.values() for p in one.parents)
        }:
            found |= more
        return tuple(found.values())

    def tables(self) -> frozenset[str]:
        """Every table whose visible version the rule asks for."""
        own = {item.table for item in self.staged}
        return frozenset(own | {read.table for item in self.staged for _, read in item.bound_reads})

    def parents(self) -> frozenset[TableRead]:
        """Everything that staged rows were built from."""
        return frozenset(read for item in self.staged for read in item.parents)


def _is_same(item: Staged, read: TableRead) -> bool:
    return (item.table, item.version) == (read.table, read.version)


def pick_group(
    book: GateBook,
    world: World,
    *,
    asked: frozenset[str] = frozenset(),
    refused: frozenset[str] = frozenset(),
) -> tuple[Staged, ...]:
    """The next group, parents first; () when nothing may go out.

    `asked`: tables with policy manual that may go; `refused`: tables whose publishing failed a moment ago.
    """
    for item in sorted(book.staged, key=lambda one: one.key):
        group = bound_group(item, book)
        if any(one.table in refused for one in group):
            continue
        if find_obstacle(group, book, world, asked) is None:
            return order_group(group)
    return ()


def needs_world(book: GateBook, asked: frozenset[str] = frozenset()) -> bool:
    """Whether pick_group depends on what readers see: a group has nothing of its own to wait for."""
    return any(
        all(one.is_out or not is_held(one, asked) for one in bound_group(item, book)) for item in book.staged
    )


def is_held(item: Staged, asked: frozenset[str] = frozenset()) -> bool:
    """Whether its own gates or policy hold it back, whatever readers see."""
    return _own_obstacle(item, asked) is not None


def bound_group(item: Staged, book: GateBook) -> tuple[Staged, ...]:
    """Rule 3: the staged snapshot with all that tests have read together with it, at any distance.

    With rule 5 also what lies between two members: built from one of them, and another one is built from it.
    """
    group = {item.key: item}
    while more := [
        one
        for one in book.staged
        if one.key not in group
        and (any(_is_bound(one, other) for other in group.values()) or _is_between(one, group, book))
    ]:
        group.update({one.key: one for one in more})
    return tuple(group[key] for key in sorted(group))


def _is_between(one: Staged, group: Mapping[tuple[str, str], Staged], book: GateBook) -> bool:
    """It must be out before a member, and cannot be out before another one is."""
    is_needed = any(_is_same(one, parent) for member in group.values() for parent in member.parents)
    return is_needed and not one.is_out and any(key in group for key in _needed(one, book))


def _needed(item: Staged, book: GateBook) -> frozenset[tuple[str, str]]:
    """Keys of what must be out before it, or together with it; its own too."""
    found = {item.key: item}
    while more := {
        one.key: one
        for one in book.staged
        if one.key not in found
        and not one.is_out
        and any(_is_bound(one, old) or any(_is_same(one, p) for p in old.parents) for old in found.values())
    }:
        found |= more
    return frozenset(found)


def _is_bound(one: Staged, other: Staged) -> bool:
    """A snapshot that is out waits for its log only: nobody has to wait for it."""
    if one.is_out or other.is_out:
        return False
    return _read_with(one, other) or _read_with(other, one)


def _read_with(one: Staged, other: Staged) -> bool:
    return any(_is_same(other, read) for _, read in one.bound_reads)


def find_obstacle(
    group: tuple[Staged, ...], book: GateBook, world: World, asked: frozenset[str] = frozenset()
) -> tuple[Staged, str] | None:
    """The first reason why a group cannot go out: whose, and in words."""
    leaving = {item.table: item.version for item in group}
    for item in group:
        if item.is_out:
            continue
        reason = _own_obstacle(item, asked) or _stale_read(item, leaving, world)
        reason = reason or _missing_parent(item, leaving, book, world)
        if reason is not None:
            return item, reason
    return None


def _own_obstacle(item: Staged, asked: frozenset[str]) -> str | None:
    if item.red_gates:
        return f"red: {', '.join(short_name(test) for test in item.red_gates)}"
    if item.missing_gates:
        return f"waiting for {', '.join(short_name(test) for test in item.missing_gates)}"
    if item.policy == "manual" and item.table not in asked:
        return "publish is manual: dbt run-operation tablestore_publish"
    return None


def _stale_read(item: Staged, leaving: Mapping[str, str], world: World) -> str | None:
    """Rule 4."""
    for test, read in item.bound_reads:
        if leaving.get(read.table, world.visible(read.table)) != read.version:
            return f"{short_name(test)} read other rows of {read.table} than readers would see: run it again"
    return None


def _missing_parent(item: Staged, leaving: Mapping[str, str], book: GateBook, world: World) -> str | None:
    """Rule 5."""
    for parent in item.parents:
        key = (parent.table, parent.version)
        if key in world.past or leaving.get(parent.table) == parent.version:
            continue
        if book.find(parent) is not None:
            return f"built from staged rows of {parent.table}, which are not published either"
        return f"built from staged rows of {parent.table} that were dropped or replaced: build it again"
    return None


def order_group(group: tuple[Staged, ...]) -> tuple[Staged, ...]:
    """Tables of a group by what they are built from, then by name: readers between two claims see old children."""
    order: list[Staged] = []
    left = list(group)
    while left:
        ready = [
            item for item in left if not any(_is_same(one, parent) for one in left for parent in item.parents)
        ] or left
        order.append(ready[0])
        left.remove(ready[0])
    return tuple(order)


def explain(item: Staged, book: GateBook, world: World) -> str:
    """Why it is held back, for the user; "free" when nothing holds it."""
    if item.is_out:
        return "published in the table, its log is pending"
    own = _own_obstacle(item, frozenset())
    if own is not None:
        return own
    found = find_obstacle(bound_group(item, book), book, world)
    if found is None:
        return "free"
    whose, reason = found
    return reason if whose.key == item.key else f"is published together with {whose.table}: {reason}"


def short_name(unique_id: str) -> str:
    """`test.shop.unique_orders_id.ab12` -> `unique_orders_id`."""
    parts = unique_id.split(".")
    return parts[2] if len(parts) > 2 else unique_id
