"""Writers of random tables: our engine and Java, which can do every step, and engines that only insert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from integration_tests.interop.flink_tables import FlinkTables
from integration_tests.interop.golden import Writer
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.oracle import DYNAMIC
from integration_tests.interop.ours import KINDS, Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.schemas import Schema, schema
from tablestore_engine.store.branches.branch_changes import create_branch, fast_forward
from tablestore_engine.store.retention import Retention
from tablestore_engine.store.write.write_request import WriteRequest

BRANCH, BASE, KEPT = "dev", "base", 2
_AT_ONCE = -(1 << 60)
FULLY = {"write-only": "false"}


class Hand(Writer, Protocol):
    """A writer that takes every step of a history."""

    def tag(self, location: Path, name: str, snapshot: int) -> None:
        """Name a snapshot."""

    def expire(self, location: Path, keep: int) -> object:
        """Expire all but the newest `keep` snapshots."""

    def open_branch(self, location: Path, rows: pa.Table, kinds: Sequence[str]) -> None:
        """Make BRANCH from the tag BASE and commit the rows into it."""

    def forward(self, location: Path) -> None:
        """Fast-forward main to BRANCH."""


class OurHand(Ours):
    """Our engine."""

    def tag(self, location: Path, name: str, snapshot: int) -> None:
        """Name a snapshot."""
        self.store(location).tags.create(name, snapshot)

    def expire(self, location: Path, keep: int) -> object:
        """Expire all but the newest `keep` snapshots."""
        rules = Retention(keep, None, retained_ms=_AT_ONCE, grace_ms=_AT_ONCE, limit=None)
        return self.store(location).expire(rules)

    def open_branch(self, location: Path, rows: pa.Table, kinds: Sequence[str]) -> None:
        """Make BRANCH from the tag BASE and commit the rows into it."""
        store = self.store(location)
        create_branch(store.context, BRANCH, tag=BASE)
        listed = pa.array([int(KINDS[kind]) for kind in kinds], pa.int8())
        store.on_branch(BRANCH).write(WriteRequest(rows=rows, kinds=listed))

    def forward(self, location: Path) -> None:
        """Fast-forward main to BRANCH."""
        fast_forward(self.store(location).context, BRANCH)

    def read_tag(self, location: Path, name: str) -> pa.Table:
        """Rows of a tag."""
        store = self.store(location)
        return store.read(store.plan_scan(store.tags.get(name).snapshot))


class JavaHand:
    """Java; `options` go with each of its writes: FULLY in tables of ours, which are write-only."""

    def __init__(self, java: JavaPaimon, options: Mapping[str, str] | None = None) -> None:
        self.name, self._java, self._options = java.name, java, dict(options or {})
        self.create, self.alter, self.compact = java.create, java.alter, java.compact
        self.snapshots, self.tag, self.expire = java.snapshots, java.tag, java.expire

    def write(
        self,
        location: Path,
        rows: pa.Table,
        kinds: Sequence[str] | None = None,
        *,
        overwrite: Mapping[str, Any] | str | None = None,
    ) -> None:
        """One commit; {} is the whole table, DYNAMIC the partitions of the rows."""
        where = None if overwrite is None else overwrite if isinstance(overwrite, Mapping) else {}
        options = dict(self._options)
        if overwrite is not None:
            options["dynamic-partition-overwrite"] = str(overwrite == DYNAMIC).lower()
        self._java.write(location, rows, kinds, overwrite=where, options=options)

    def open_branch(self, location: Path, rows: pa.Table, kinds: Sequence[str]) -> None:
        """Make BRANCH from the tag BASE and commit the rows into it."""
        self._java.table(location).createBranch(BRANCH, BASE)
        self._java.write(location, rows, kinds, options={**self._options, "branch": BRANCH})

    def forward(self, location: Path) -> None:
        """Fast-forward main to BRANCH."""
        self._java.table(location).fastForward(BRANCH)


class Inserter(Protocol):
    """An engine that inserts rows, which are upserts where the table has a key."""

    def insert(self, location: Path, rows: pa.Table, made: Schema) -> None:
        """One commit."""


class PythonInserter:
    """pypaimon and pypaimon-rust."""

    def __init__(self, peer: ProcessPeer) -> None:
        self._peer = peer

    def insert(self, location: Path, rows: pa.Table, made: Schema) -> None:
        """One commit."""
        stored = Ours().store(location).schema.arrow_schema()
        self._peer.write(location, rows.select(made.names).cast(stored))


class SqlInserter:
    """paimon-spark and Flink: INSERT from a table of the rows, which we write beside theirs."""

    def __init__(self, engine: ProcessPeer | FlinkTables) -> None:
        self._engine, self._made = engine, 0

    def insert(self, location: Path, rows: pa.Table, made: Schema) -> None:
        """One commit."""
        self._made += 1
        us, fresh = Ours(), location.with_name(f"{location.name}_fresh{self._made}")
        us.create(fresh, schema({one.name: one.type for one in made.columns}))
        us.write(fresh, rows.cast(us.store(fresh).schema.arrow_schema()))
        if isinstance(self._engine, ProcessPeer):
            name = self._engine.ask("name", location=str(fresh))
        else:
            name = f"p.`{fresh.parent.name.removesuffix('.db')}`.`{fresh.name}`"
        self._engine.sql(location, f"INSERT INTO {{table}} SELECT * FROM {name}")
