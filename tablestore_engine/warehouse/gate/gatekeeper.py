"""Publishing what the gate lets go: reads what lies beside the staged snapshots, asks the rule, performs it.

CHANGE     how a staged snapshot is published
Steps      publish a group: 1 no member is being dropped or has a table that moved, and every log could be sent now
           2 claims, parents first: each is one exclusive create
           3 logs, in the same order  4 branches of what is in table and log are removed  5 what is due expires
           A table of its own (is_beside) takes its name in step 2; what it replaced is deleted in step 4.
INVARIANT  a branch stays until its log has everything: a pending publication is found by whoever comes next.
INVARIANT  readers between two claims of step 2 see new parents with old children, never the other way round.
CRASH      in step 2: the members that are out are what the tests of the others read, so the next call finishes the
           group, or refuses the rest when readers see other rows. In step 3: sent again, the log drops repetitions.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import partial

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.read_log import TableRead
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.errors import (
    LogNotReady,
    PublishPending,
    RetryError,
    StagedSnapshotOvertaken,
    TablestoreError,
)
from tablestore_engine.format.layout import MAIN_BRANCH, TableLayout
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.metadata.commit_history import commit_of, rows_version
from tablestore_engine.store.metadata.snapshots import SnapshotStore
from tablestore_engine.store.stage.stage_drop import StageDrop, begin_drop, begin_publishing, is_long_staged
from tablestore_engine.store.stage.stage_rebase import StagedSnapshot
from tablestore_engine.store.stage.staging import find_staged, list_stage_names, with_outcomes
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.warehouse.gate.failing_rows import encode_failing_rows
from tablestore_engine.warehouse.gate.gate_rule import GateBook, Outcome, Staged, World
from tablestore_engine.warehouse.gate.staged_table_swap import StagedTableSwaps
from tablestore_engine.warehouse.gate.stored_gates import NAME, read_staged, was_published_as
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write_report import WriteReport, report_of

PUBLISHED, PENDING, REFUSED = "published", "pending", "refused"


@dataclass(frozen=True)
class Publication:
    """`pending`: the table has it, its log does not yet. `error` says why it is not published."""

    staged: Staged
    state: str
    report: WriteReport | None = None
    error: TablestoreError | None = None

    @property
    def waits_for_log(self) -> bool:
        """Nothing was done, since its log could not be sent: it stays with its verdicts, and needs no new rows."""
        return self.state == REFUSED and isinstance(self.error, LogNotReady)

    @property
    def is_overtaken(self) -> bool:
        """Refused because somebody else's rows came first: planned and tested again it may go out."""
        return isinstance(self.error, StagedSnapshotOvertaken) and self.report is None

    def line(self) -> str:
        if self.state == PUBLISHED and self.report is not None:
            return f"{self.staged.table} published: {self.report.summary()}"
        if self.state == PENDING and self.report is not None:
            return (
                f"{self.staged.table}: {self.report.summary()} is published in the table, "
                f"its log is PENDING: {self._reason()}"
            )
        return f"{self.staged.table} NOT published: {self._reason()}"

    def _reason(self) -> str:
        return "; ".join(line.strip() for line in str(self.error).splitlines())


@dataclass(frozen=True)
class _Member:
    """Of a group, as its publication has found it: where it lies, and what is staged there under its name."""

    item: Staged
    store: TableStore | None
    staged: StagedSnapshot | None

    @property
    def is_as_tested(self) -> bool:
        """Whether it has the rows that `item` had."""
        return self.staged is not None and commit_of(self.staged.snapshot) == self.item.version


class Gatekeeper:
    """REQUIRES that the caller holds the lock of the book. `seen`: tables are looked up once for all steps of an
    operation.
    """

    def __init__(self, warehouse: Warehouse, seen: SeenStates | None = None) -> None:
        self._warehouse = warehouse
        self._table_swaps = StagedTableSwaps(warehouse)
        self._seen = seen

    def looking_once(self) -> Gatekeeper:
        """For one outcome with what it publishes: each table is looked at once, before the claim looks again."""
        return Gatekeeper(self._warehouse, SeenStates())

    def now_ms(self) -> int:
        """By the clock of the warehouse."""
        return self._warehouse.catalog.runtime.now_ms()

    def databases(self) -> tuple[str, ...]:
        """In which what was built from a staged snapshot may be staged."""
        return tuple(self._warehouse.catalog.list_databases())

    def read_book(self, *names: str) -> GateBook:
        """Staged snapshots of tables (`db.table`) and databases (`db`), each with its outcomes."""
        found: list[Staged] = []
        for name in names:
            database, dot, table = name.partition(".")
            for one in (table,) if dot else self._list_staged_tables(database):
                found += self._read_all(Identifier(database, one))
        return GateBook(tuple(found))

    def _list_staged_tables(self, database: str) -> list[str]:
        """Tables in which something is staged, or beside which a table waits, sorted."""
        catalog = self._warehouse.catalog
        names, waiting = catalog.list_table_folders(
            database
        )  # a folder with a stage is opened as a table next
        branch = catalog.branch or MAIN_BRANCH
        layouts = [TableLayout(catalog.location(Identifier(database, name)), branch) for name in names]
        looks = [partial(list_stage_names, catalog.fileio, layout) for layout in layouts]
        stages = catalog.fileio.run_together(looks)
        return sorted({*waiting, *(name for name, staged in zip(names, stages, strict=True) if staged)})

    def _read_all(self, identifier: Identifier) -> list[Staged]:
        """In the table, and in the one that waits beside it."""
        found: list[Staged] = []
        for place in (identifier, identifier.replacement):
            store = self._warehouse.stores.find(place)
            staged = () if store is None else store.staging.list_all()
            seen = (
                store.find_seen() if store is not None and staged else None
            )  # behind the list: what went out is out
            if seen is not None:
                found += [read_staged(place, seen, one) for one in staged]
        return found

    def find(self, table: str, name: str) -> Staged | None:
        """One staged snapshot with its outcomes; None when it was published or dropped."""
        identifier = Identifier.parse(table)
        for place in (identifier, identifier.replacement):
            context = self._warehouse.stores.find_context(place)
            staged = None if context is None else find_staged(context, name)
            seen = None if staged is None else self._warehouse.stores.find_seen(place)
            if seen is not None and staged is not None:
                return read_staged(place, seen, with_outcomes(seen, staged))
        return None

    def complete_book(self, book: GateBook) -> GateBook:
        """With what lies in the tables that its tests and parents name, as far as it is not in the book yet."""
        asked: set[str] = set()
        while wanted := {read.table for read in _named(book)} - asked:
            asked |= wanted
            known = {item.key for item in book.staged}
            more = [item for item in self.read_book(*sorted(wanted)).staged if item.key not in known]
            book = GateBook((*book.staged, *more))
        return book

    def see(self, book: GateBook) -> World:
        """What readers see of everything that the book asks for."""
        names = {*book.tables(), *(read.table for read in book.parents())}
        newest = {name: look for name in sorted(names) if (look := self._newest(name)) is not None}
        current = {name: rows_version(*newest[name]) for name in book.tables() if name in newest}
        past = {
            (read.table, read.version)
            for read in book.parents()
            if read.table in newest and was_published_as(*newest[read.table], read)
        }
        return World(current, frozenset(past))

    def _newest(self, table: str) -> tuple[SnapshotStore, Snapshot | None] | None:
        store = self._warehouse.stores.find_as_seen(Identifier.parse(table), self._seen)
        return None if store is None else (store.snapshots, store.latest())

    def is_current(self, item: Staged) -> bool:
        """Whether it is there, and readers see the rows that it was planned on."""
        found = self._look(replace(item, is_beside=False))
        return found.staged is not None and _is_on(found.store, found.staged.base)

    def was_published(self, table: str, name: str, *, since: int) -> bool:
        """Whether a snapshot of the table, from the id `since` on, was the staged one of that name."""
        store = self._warehouse.stores.find(Identifier.parse(table))
        if store is None:
            return False
        ids = (number for number in store.snapshots.list_ids() if number >= since)
        found = (store.snapshots.find(number) for number in ids)
        return any(one is not None and (one.properties or {}).get(NAME) == name for one in found)

    def record(self, item: Staged, outcome: Outcome) -> None:
        """Keep what a test said beside the staged snapshot, if it matters there. Raises NotFound TS1316."""
        if not item.takes(outcome):
            return
        kept = {
            "reads": [asdict(read) for read in outcome.reads],
            "constants": [asdict(read) for read in outcome.constants],
            **encode_failing_rows(outcome.failing),
        }
        details = json.dumps(kept)
        place = _place(item)
        store = self._warehouse.stores.find_as_seen(place, self._seen) or self._warehouse.stores.get(place)
        store.staging.record_outcome(item.name, outcome.test, str(outcome.verdict), details)

    def drop(self, item: Staged) -> None:
        """Discard a staged snapshot; one that is gone already is fine."""
        identifier = Identifier.parse(item.table)
        if item.is_beside:
            self._table_swaps.drop(identifier, item.name)
        elif self._warehouse.stores.find(identifier) is not None:
            self._warehouse.drop_staged(identifier, item.name)

    def begin_drop(self, item: Staged) -> StageDrop | None:
        """Of one that is past its retention; None when it is published or written, or is another one by now."""
        found = self._look(item)
        if found.store is None or found.staged is None or not found.is_as_tested:
            return None
        return begin_drop(found.store.context, found.staged)

    def _look(self, item: Staged) -> _Member:
        store = self._warehouse.stores.find_as_seen(_place(item), self._seen)
        return _Member(item, store, None if store is None else store.staging.find(item.name))

    def finish_replacement(self, table: str) -> None:
        """What a killed write with `beside` has left to do behind the change of places. Raises TS17xx."""
        self._table_swaps.finish(Identifier.parse(table))

    def publish(self, group: tuple[Staged, ...]) -> tuple[Publication, ...]:
        """All members or, when a table has moved or a log is in trouble, none; what happened to each is in the answer,
        nothing is raised.
        """
        if self._seen is None:
            return self.looking_once().publish(group)
        members = [self._look(item) for item in group]
        obstacle = self._find_drop(members) or self._find_moved(members) or self._find_unready_log(members)
        if obstacle is not None:
            return tuple(Publication(item, REFUSED, error=obstacle) for item in group)
        claimed: list[Publication] = []
        for one in members:
            claimed.append(self._claim(one, claimed))
        sent = [
            self._send(done, one.store) if done.state == PENDING else done
            for done, one in zip(claimed, members, strict=True)
        ]
        return tuple(self._expire_behind(one) for one in sent)

    def _find_drop(self, members: list[_Member]) -> TablestoreError | None:
        """Step 1: from now on no retention drops a member; costs nothing for what was written a moment ago."""
        now = self.now_ms()
        for one in members:
            try:
                if is_long_staged(one.item.written_ms, now) and one.store and one.staged and one.is_as_tested:
                    begin_publishing(one.store.context, one.staged)
            except TablestoreError as error:
                return error
        return None

    def _find_moved(self, members: list[_Member]) -> RetryError | None:
        """Step 1, before anything of a group is out. A single one is refused by the claim itself."""
        for one in members if len(members) > 1 else ():
            moved = self._how_moved(one)
            if moved is not None:
                return StagedSnapshotOvertaken(
                    "TS1075",
                    f"{', '.join(each.item.table for each in members)} are published together or not at all",
                    why=f"{one.item.table} {moved}",
                    fix="build these models again: they are planned on what is there now, and their tests run again",
                )
        return None

    def _find_unready_log(self, members: list[_Member]) -> TablestoreError | None:
        """Step 1 as well: what would be pending behind the claim is refused before it."""
        for one in members:
            identifier = Identifier.parse(one.item.table)
            try:
                if one.item.is_beside:
                    self._table_swaps.check_logs(identifier, one.item.name)
                elif one.store is not None and one.staged is not None:
                    self._warehouse.logs.check_found(identifier, one.store.context, one.staged)
            except TablestoreError as error:
                return error
        return None

    def _how_moved(self, one: _Member) -> str | None:
        item = one.item
        if item.is_beside:
            is_same = self._table_swaps.is_awaited(Identifier.parse(item.table), item.name)
            return (
                None if is_same else f"is another relation than when {item.name} was made to take its place"
            )
        if one.store is None or one.staged is None:
            return None  # the claim says what is wrong
        if _is_on(one.store, one.staged.base) or _rows_now(one.store) == item.version:
            return None
        return f"has other rows since {item.name} was staged on snapshot {one.staged.base_id}"

    def _claim(self, one: _Member, before: list[Publication]) -> Publication:
        """Step 2; after a lost claim the rest of the group stays."""
        item = one.item
        failed = next((done for done in before if done.state == REFUSED), None)
        if failed is not None:
            return Publication(item, REFUSED, error=_torn(item, before, failed))
        identifier = Identifier.parse(item.table)
        try:
            if item.is_beside:
                return Publication(item, PENDING, self._table_swaps.publish(identifier, item.name))
            staging = (one.store or self._warehouse.stores.get(identifier)).staging
            staged = None if one.staged is None else staging.find_again(one.staged)
            if staged is None:
                snapshots = staging.context.snapshots
                newest = snapshots.find_latest()
                if newest is not None and was_published_as(snapshots, newest, item.as_read):
                    # by another process, a moment ago
                    return Publication(item, PENDING, WriteReport(identifier, newest.id))
                staged = staging.get(item.name)
            if commit_of(staged.snapshot) != item.version:
                return Publication(item, REFUSED, error=_written_since(item, commit_of(staged.snapshot)))
            done = staging.publish_found(staged, keep=True, only=staged.snapshot.uuid)
        except TablestoreError as error:
            return Publication(item, REFUSED, error=error)
        return Publication(item, PENDING, report_of(identifier, done))

    def _send(self, one: Publication, store: TableStore | None) -> Publication:
        """Steps 3 and 4. `store`: where it was staged."""
        identifier = Identifier.parse(one.staged.table)
        if one.report is None:
            return one
        report = self._warehouse.iceberg.after_commit(identifier, one.report)
        try:
            report = self._warehouse.logs.published(identifier, report)
        except TablestoreError as error:
            return replace(one, error=error)
        self._table_swaps.clear(identifier)
        place = None if one.staged.is_beside else store
        (place or self._warehouse.stores.get(identifier)).staging.discard(one.staged.name)
        return replace(one, state=PUBLISHED, report=report)

    def _expire_behind(self, one: Publication) -> Publication:
        """Step 5, when the whole group is out: a branch holds what it was built on."""
        if one.state != PUBLISHED or one.report is None:
            return one
        try:
            report = self._warehouse.expiry.after_commit(Identifier.parse(one.staged.table), one.report)
        except PublishPending as error:  # of a later snapshot, without rows of expired partitions
            report = replace(one.report, partitions_trouble=str(error))
        return replace(one, report=report)


def _place(item: Staged) -> Identifier:
    """The table in whose folder it lies."""
    return replace(Identifier.parse(item.table), is_replacement=item.is_beside)


def _is_on(store: TableStore | None, base: Snapshot | None) -> bool:
    """Whether readers see the rows of `base`."""
    return store is not None and _rows_now(store) == rows_version(store.snapshots, base)


def _rows_now(store: TableStore) -> str:
    """The version of the rows that readers see."""
    return rows_version(store.snapshots, store.latest())


def _written_since(item: Staged, version: str) -> RetryError:
    return RetryError(
        "TS1085",
        f"staged snapshot {item.name} of {item.table} has other rows than its tests have read",
        why=f"they read {item.version}, another process made it {version}",
        fix="run the tests again: dbt test",
    )


def _named(book: GateBook) -> list[TableRead]:
    reads = [read for item in book.staged for one in item.outcomes for read in one.reads]
    return [*reads, *book.parents()]


def _torn(item: Staged, before: list[Publication], failed: Publication) -> StagedSnapshotOvertaken:
    out = ", ".join(one.staged.table for one in before if one.state == PENDING) or "nothing"
    return StagedSnapshotOvertaken(
        "TS1076",
        f"{item.table} stays staged: it is published together with {failed.staged.table}, which was refused",
        why=f"of this group {out} is published; {failed.error}",
        fix=f"build {failed.staged.table} and {item.table} again: they are planned and tested on what is published",
    )
