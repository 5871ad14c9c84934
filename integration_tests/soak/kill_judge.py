"""Whether a table whose writers were killed is what their commands say.

Steps      1 invariants of all files  2 every snapshot is replayed: commit user and identifier name the command, its
           rows and changes must be what our reader shows  3 acks, tags, branches, filters  4 the log, if there is one
           (kill_topics.py), and other readers of the newest rows
INVARIANT  what is expected comes from (table, writer, turn) and the acks, never from the table itself.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import Peer
from integration_tests.interop.rows import Change, assert_same, plain_rows
from integration_tests.soak.kill_topics import check_topic
from integration_tests.soak.killed_tables import COLUMNS, KilledTable
from integration_tests.soak.killed_writer import (
    HOUR_MS,
    NAME,
    Command,
    acks_of,
    command_of,
    table_folder,
    user_of,
)
from integration_tests.soak.merged_before import USER, versions_before
from integration_tests.soak.six_histories import State, Truth
from integration_tests.soak.version_oracle import VersionOracle
from tablestore_engine.api import Engine, Table
from tablestore_engine.format.snapshot import Snapshot

_LOOKED_FOR = 4
_INDEXED = ("a", "g")


@dataclass
class Replay:
    """The snapshots so far: identities of commands, states by snapshot, and rows by the oracle."""

    table: KilledTable
    oracle: VersionOracle
    truth: Truth
    found: dict[tuple[str, int], int] = field(default_factory=dict)
    changes: dict[int, list[Change]] = field(default_factory=dict)
    versions: int = 0

    @classmethod
    def of(cls, table: KilledTable) -> Replay:
        """Before the first one."""
        return cls(table, VersionOracle(table), Truth(table.schema))

    def take(self, snapshot: Snapshot) -> Command | None:
        """Its changes on the oracle; the command that it is, None for one that changes no row."""
        where = f"seed {self.table.seed}, snapshot {snapshot.id}"
        command, told = self._command(snapshot, where), []
        if command is not None:
            identity = (snapshot.commit_user, snapshot.commit_identifier)
            assert identity not in self.found, f"{where}: {identity} is there twice"
            self.found[identity] = snapshot.id
            told = run_on(self.oracle, command)
        self.changes[snapshot.id] = told
        self.truth.states[snapshot.id] = self.oracle.state()
        self.truth.schemas[snapshot.id] = self.table.schema
        return command

    def _command(self, snapshot: Snapshot, where: str) -> Command | None:
        if self.table.is_converted:
            self._take_versions(snapshot)
        name, _, number = snapshot.commit_user.rpartition("-")
        if snapshot.commit_kind == "COMPACT" or snapshot.commit_user == USER:
            return None
        if name != user_of(0).rpartition("-")[0] or not number.isdecimal():
            assert snapshot.commit_kind == "OVERWRITE", f"{where} of {snapshot.commit_user}"  # a rescale
            return None
        return command_of(self.table, int(number), snapshot.commit_identifier)

    def _take_versions(self, snapshot: Snapshot) -> None:
        """Those of the other engine: a conversion expires its snapshots."""
        before = versions_before(self.table)
        until = snapshot.id if snapshot.commit_user == USER else len(before)
        for changes in before[self.versions : until]:
            self.oracle.apply(changes)
        self.versions = max(self.versions, until)


def run_on(oracle: VersionOracle, command: Command) -> list[Change]:
    """The changes of a command."""
    if command.work == "replace":
        return oracle.replace(row for _, row in command.changes)
    return oracle.apply(command.changes)


def judge(root: Path, table: KilledTable, peers: Sequence[Peer] = (), url: str = "") -> tuple[int, int]:
    """How many commands were acknowledged, and snapshots replayed. Raises AssertionError with the seed."""
    ours, location, replay = Ours(), table_folder(root), Replay.of(table)
    where = f"seed {table.seed} ({table})"
    with Engine(str(root / "warehouse"), log={"kafka.bootstrap.servers": url} if url else None) as engine:
        handle = engine.table(NAME)
        problems = handle.verify()
        assert not problems, f"{where}: {problems}"
        snapshots = handle.snapshots()
        for snapshot in snapshots:
            command = replay.take(snapshot)
            _check_changes(table, ours, location, snapshot, command, replay.changes[snapshot.id])
            at = f"{where}, snapshot {snapshot.id}"
            assert_same(replay.oracle.rows(), ours.read(location, snapshot.id), at)
        acks = _check_acks(root, table, replay)
        _check_tags(handle, root, table, snapshots)
        _check_branches(handle, table, replay)
        _check_filters(handle, table, replay)
        if url:
            check_topic(handle, url, table, replay.truth)
    for peer in peers:
        assert_same(replay.oracle.rows(), peer.read(location), f"{peer.name}, {where}")
    return acks, len(snapshots)


def _check_changes(
    table: KilledTable,
    ours: Ours,
    location: Path,
    snapshot: Snapshot,
    command: Command | None,
    changes: list[Change],
) -> None:
    """What the changelog tells; equal rows before and after an update tell nothing."""
    where = f"seed {table.seed} ({table}), changelog of snapshot {snapshot.id}"
    if table.producer == "none":
        return
    told = ours.changelog(location, snapshot.id - 1, snapshot.id)
    if table.producer == "input" and command is not None and command.work != "replace":
        names = list(COLUMNS)
        came = [
            ("-D" if kind == "-D" else "+", tuple(row[n] for n in names)) for kind, row in command.changes
        ]
        assert_same(came, [("-D" if kind == "-D" else "+", row) for kind, row in told], where)
        return
    assert_same(changes, without_equal(told), where)


def without_equal(told: Iterable[Change]) -> list[Change]:
    """Without updates of a row by an equal one."""
    listed = list(told)
    same = Counter(row for kind, row in listed if kind == "-U")
    same &= Counter(row for kind, row in listed if kind == "+U")
    gone = {"-U": same.copy(), "+U": same.copy()}
    kept = []
    for kind, row in listed:
        if gone.get(kind, Counter())[row] > 0:
            gone[kind][row] -= 1
        else:
            kept.append((kind, row))
    return kept


def _check_acks(root: Path, table: KilledTable, replay: Replay) -> int:
    """Each is the snapshot that it says; how many there are."""
    count = 0
    for writer in range(table.writers):
        for turn, snapshot in acks_of(root, writer).items():
            count += 1
            if command_of(table, writer, turn).changes:
                identity = (user_of(writer), turn)
                there = replay.found.get(identity)
                assert str(there) == snapshot, f"seed {table.seed}: ack {identity}: {snapshot}, it is {there}"
    return count


def _check_tags(handle: Table, root: Path, table: KilledTable, snapshots: Sequence[Snapshot]) -> None:
    """Those that were acknowledged, and those of the hours; each names the snapshot that it was made of."""
    expected = {
        f"{user_of(writer)}-{turn}": int(snapshot)
        for writer in range(table.writers)
        for turn, snapshot in acks_of(root, writer).items()
        if command_of(table, writer, turn).work == "tag"
    }
    expected |= _tags_of_hours(snapshots) if table.makes_tags else {}
    tags = dict(handle.list_tags())
    assert tags == expected, f"seed {table.seed} ({table}): tags {tags}, expected {expected}"


def _tags_of_hours(snapshots: Sequence[Snapshot]) -> dict[str, int]:
    """The first snapshot of each hour has the name of the hour before it."""
    found: dict[str, int] = {}
    last = -1
    for one in snapshots:
        hour = one.time_millis // HOUR_MS - 1
        if hour > last:
            moment = dt.datetime.fromtimestamp(hour * HOUR_MS / 1000, dt.UTC)
            found[moment.strftime("%Y-%m-%d %H")] = one.id
            last = hour
    return found


def _check_branches(handle: Table, table: KilledTable, replay: Replay) -> None:
    """One that was left has main's rows, and those of its command on them."""
    for name in handle.branches():
        branch = handle.branch(name)
        base: State | None = None
        for snapshot in branch.snapshots():
            where = f"seed {table.seed}, branch {name}, snapshot {snapshot.id}"
            oracle = VersionOracle(table)
            if f"{snapshot.commit_user}-{snapshot.commit_identifier}" == name and base is not None:
                writer, turn = int(name.split("-")[1]), int(name.split("-")[2])
                oracle.put_back(base)
                run_on(oracle, command_of(table, writer, turn))
            elif snapshot.commit_kind == "COMPACT" and base is not None:
                oracle.put_back(base)
            else:
                oracle.put_back(replay.truth.states[snapshot.id])
            base = oracle.state()
            got = branch.store.read(branch.store.plan_scan(snapshot))
            assert_same(oracle.rows(), plain_rows(got), where)


def _check_filters(handle: Table, table: KilledTable, replay: Replay) -> None:
    """A file's index leaves no row out: values that are there, and one that is not."""
    rows = replay.oracle.rows()
    for name in _INDEXED:
        at = list(COLUMNS).index(name)
        values = sorted({row[at] for row in rows if row[at] is not None})[:: max(1, len(rows) // _LOOKED_FOR)]
        for value in [*values, "nowhere" if name == "a" else -7]:
            shown = f"'{value}'" if name == "a" else value
            got = handle.scan(filter=f"{name} = {shown}").to_arrow().column("id").to_pylist()
            wanted = [row[0] for row in rows if row[at] == value]
            assert_same(wanted, got, f"seed {table.seed} ({table}), {name} = {shown}")
