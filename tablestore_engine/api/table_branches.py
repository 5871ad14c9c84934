"""The branches of a table: make one, write and read it, and bring its snapshots to main."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from tablestore_engine.api.table_handle import TableHandle
from tablestore_engine.api.table_reads import TableReads
from tablestore_engine.api.table_system import TableSystem
from tablestore_engine.api.table_writes import TableWrites
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.warehouse.write_report import WriteReport, report_of

if TYPE_CHECKING:
    from tablestore_engine.store.branches.branch_changes import ForwardReport
    from tablestore_engine.warehouse.write.write_spec import WriteSpec


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

    def write(self, rows: object, spec: WriteSpec | None = None) -> WriteReport:
        """One commit on the branch. Rows have the columns of the branch; a `spec` may have the fields of CommitOptions.

        Rows are what Arrow can take: no SQL text and no Spark frame. Raises FixRequest TS1373, TS1023, as Table.write.
        """
        from tablestore_engine.store.write.write_request import WriteRequest
        from tablestore_engine.warehouse.write.incoming import shape_arrow, split_kinds
        from tablestore_engine.warehouse.write.incoming_rows import to_arrow
        from tablestore_engine.warehouse.write.write_spec import WriteSpec

        spec = spec or WriteSpec()
        self._check(spec)
        schema = self.schema
        given = to_arrow(rows)
        self._check_columns([name.lower() for name in given.column_names if not name.startswith("_ROW_KIND")])
        made, kinds = split_kinds(shape_arrow(given, schema))
        request = WriteRequest(rows=made, kinds=kinds, **spec.commit_options())
        return report_of(self.identifier, self.store.write(request))

    def _check(self, spec: WriteSpec) -> None:
        from tablestore_engine.store.write.write_request import CommitOptions
        from tablestore_engine.warehouse.write.write_spec import WriteSpec

        known, plain = {one.name for one in fields(CommitOptions)}, WriteSpec()
        others = [
            one.name
            for one in fields(WriteSpec)
            if one.name not in known and getattr(spec, one.name) != getattr(plain, one.name)
        ]
        if others or spec.stage is not None:
            raise self._no_write(f"{', '.join(others or ['stage'])} of a WriteSpec is for the main branch")

    def _check_columns(self, names: list[str]) -> None:
        wanted = [name.lower() for name in self.schema.field_names]
        if sorted(names) != sorted(wanted):
            raise self._no_write(f"the rows have {', '.join(names)}; the columns are {', '.join(wanted)}")

    def _no_write(self, why: str) -> FixRequest:
        return FixRequest(
            "TS1373",
            f"rows cannot be written to {self.identifier}$branch_{self.name}",
            why=why,
            fix="give all columns of the branch, and no field of WriteSpec beside those of CommitOptions",
        )


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
        return Branch(self.warehouse, self.identifier, self.store.on_branch(name))

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

        report = fast_forward(self.store.context, name)
        self.warehouse.iceberg.follow(self.identifier)
        newest = WriteReport(self.identifier, self.store.snapshots.find_latest_id())
        self.warehouse.logs.published(self.identifier, newest)
        return report
