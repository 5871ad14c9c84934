"""The branches of a table: make one, write and read it, and bring its snapshots to main."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablestore_engine.api.table_handle import TableHandle
from tablestore_engine.api.table_reads import TableReads
from tablestore_engine.api.table_system import TableSystem
from tablestore_engine.api.table_writes import TableWrites
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.warehouse.write_report import WriteReport

if TYPE_CHECKING:
    from tablestore_engine.store.branches.branch_changes import ForwardReport


@dataclass(frozen=True, repr=False)
class Branch(TableReads, TableSystem, TableWrites):
    """One branch of a table: `Table.branch`. It reads and writes rows as a Table does; nothing of it is in the log.

    >>> orders.create_branch("dev", snapshot=1)
    >>> dev = orders.branch("dev")
    >>> dev
    Branch('demo.orders$branch_dev')
    >>> report = dev.upsert([{"id": 4, "region": "us", "amount": 40.0}])
    >>> len(dev), len(orders)
    (4, 3)
    """

    def __repr__(self) -> str:
        """`Branch('demo.orders$branch_dev')`; it looks at no file."""
        return f"Branch('{self.identifier}$branch_{self.name}')"

    @property
    def name(self) -> str:
        """Of the branch."""
        return self.store.branch

    def snapshots(self, *, last: int | None = None) -> tuple[Snapshot, ...]:
        """All snapshots of the branch, or the newest `last`, oldest first."""
        return self.store.snapshots.list_all(last)

    def tags(self) -> Mapping[str, int]:
        """Tag name -> snapshot id, of this branch."""
        return self.store.tags.list_all()


@dataclass(frozen=True, repr=False)
class TableBranches(TableHandle):
    """The branches of a Table."""

    def branches(self) -> tuple[str, ...]:
        """Their names, by name; staged snapshots apart.

        >>> orders.create_branch("dev")
        >>> orders.branches()
        ('dev',)
        """
        from tablestore_engine.store.branches.branch_list import list_user_branches

        return list_user_branches(self.store.context)

    def branch(self, name: str) -> Branch:
        """A handle on a branch, to read and write its rows. Raises NotFound TS1346.

        >>> orders.create_branch("dev", snapshot=1)
        >>> orders.branch("dev").count()
        3
        """
        return Branch(self.warehouse.on_branch(name), self.identifier, self.store.on_branch(name))

    def create_branch(self, name: str, *, snapshot: int | None = None, tag: str | None = None) -> None:
        """Make a branch that begins with a snapshot or a tag; with neither it begins empty, with the table's schema.

        Data files are shared: nothing is copied but metadata, and expiry of main keeps what the branch needs.
        Raises FixRequest TS1107, TS1350, TS1374, NotFound TS1302, TS1321.

        >>> orders.create_branch("fix", snapshot=1)
        >>> orders.branch("fix").delete("id = 1").deleted
        1
        """
        from tablestore_engine.store.branches.branch_changes import create_branch

        if snapshot is not None and tag is not None:
            raise FixRequest(
                "TS1374",
                f"branch {name} of {self.identifier} cannot begin with two states",
                why=f"snapshot {snapshot} and tag {tag} are given",
                fix="name one of them",
            )
        create_branch(self.store.context, name, snapshot=snapshot, tag=tag)

    def delete_branch(self, name: str) -> None:
        """Remove a branch; files that it alone needs are orphan files then. Raises NotFound TS1346.

        >>> orders.create_branch("dev")
        >>> orders.delete_branch("dev")
        >>> orders.branches()
        ()
        """
        from tablestore_engine.store.branches.branch_changes import delete_branch

        delete_branch(self.store.context, name)

    def fast_forward(self, name: str) -> ForwardReport:
        """Bring the snapshots of a branch to main, whose newest snapshot must be one of the branch.

        A commit to main meanwhile is never lost: then this is RetryError TS1363. Main's log gets the changes. The
        branch stays. Raises NotFound TS1346, RetryError TS1363, FixRequest TS1364, PublishPending TS1070.

        >>> orders.create_branch("dev", snapshot=1)
        >>> report = orders.branch("dev").delete("id = 2")
        >>> orders.fast_forward("dev").added
        (2,)
        >>> len(orders)
        2
        """
        from tablestore_engine.store.branches.branch_changes import fast_forward
        from tablestore_engine.warehouse.streaming_state_files import StreamingStateFiles

        self.warehouse.logs.check(self.identifier, self.store.on_branch(name).schema)
        states = StreamingStateFiles(self.warehouse.on_branch(name).catalog, self.identifier)
        states.copy_to_main(self.store.on_branch(name))
        report = fast_forward(self.store.context, name)
        self.warehouse.iceberg.follow(self.identifier)
        newest = WriteReport(self.identifier, self.store.snapshots.find_latest_id())
        self.warehouse.logs.published_after_commit(self.identifier, newest)
        return report
