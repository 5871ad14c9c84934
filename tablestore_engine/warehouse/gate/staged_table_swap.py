"""A write that has to be a table of its own: complete beside what has the name, swapped in at once or after its tests.

CHANGE     how a gated table replaces a view or another table
Steps      the rows as a staged snapshot of the new table → with a stage of the caller's it waits for its tests;
           without, it takes the place, and what it replaced is deleted
WHY        a branch shares key, partitions and folder with its table; a view has none of these, and another key is
           another table. Its tests read it through the same pins as any staged snapshot (catalog.name_lookup).
INVARIANT  the old relation stays as it is until the new one has its place (catalog.table_swap); one waits at most.
INVARIANT  a log belongs to one table (decision 0049): the new table's is made and claimed before its first row is
           written, gets its rows when the table has its place, and is another one than the old table's. The old one
           has all changes of the old table before that, and is deleted behind it when the engine made it.
CRASH      before the change of places: the old table and its log are as they were. Behind it: the new log is pending,
           and the next write or publication of the table sends it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.table_swap import REPLACES
from tablestore_engine.catalog.target_branch import refuse_on
from tablestore_engine.errors import FixRequest, PublishPending, RetryError, TablestoreError
from tablestore_engine.store.stage.staging import is_out
from tablestore_engine.warehouse.log.table_publisher import unready_log
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.incoming import Incoming
from tablestore_engine.warehouse.write.write_spec import WriteSpec
from tablestore_engine.warehouse.write_report import WriteReport, report_of

_AT_ONCE = "beside-"  # the stage of a change that waits for no test; behind it a name that nobody else has


@dataclass(frozen=True)
class StagedTableSwaps:
    warehouse: Warehouse

    def write(self, identifier: Identifier, incoming: Incoming, spec: WriteSpec) -> WriteReport:
        """Raises FixRequest TS1081, RetryError TS1480, and what a write raises; then the old relation is as it was.

        Raises PublishPending TS1070 when the new table has its place and its log is pending.
        """
        catalog = self.warehouse.catalog
        if catalog.branch is not None and catalog.table_swap(identifier).state() is not None:
            refuse_on(
                catalog.branch, f"replacing {identifier} by a table with another key or other partitions"
            )
        place, begun = self._begin(identifier, spec)
        if spec.stage is not None or not place.is_replacement:
            return self.warehouse.write_incoming(place, incoming, begun)
        stage = f"{_AT_ONCE}{self.warehouse.catalog.runtime.new_uuid()}"  # who replaces it too has another
        try:
            report = self.warehouse.write_incoming(place, incoming, replace(begun, stage=stage))
            self.finish_old_log(identifier)
        except BaseException:
            self.drop(identifier, stage)
            raise
        try:
            done = self.publish(identifier, stage)
        except RetryError:  # the name means something else than it was made for
            self.drop(identifier, stage)
            raise
        report = replace(report, table=identifier, snapshot_id=done.snapshot_id, staged=None)
        report = self.warehouse.iceberg.after_commit(identifier, report)
        try:
            report = self.warehouse.logs.published_after_commit(identifier, report)
        except PublishPending:
            self._tidy(identifier)
            raise
        self._tidy(identifier)
        return report

    def finish(self, identifier: Identifier) -> None:
        """After a kill behind a change of places at once: the log is sent, what was replaced goes. Raises TS17xx."""
        catalog = self.warehouse.catalog
        if catalog.branch is not None or catalog.table_swap(identifier).is_cleared():
            return
        store = self.warehouse.stores.find(identifier)
        if store is not None:
            self.warehouse.logs.published(
                identifier, WriteReport(identifier, store.snapshots.find_latest_id())
            )
            self._tidy(identifier)

    def _tidy(self, identifier: Identifier) -> None:
        self.clear(identifier)
        staging = self.warehouse.stores.get(identifier).staging
        for staged in staging.list_all():
            if staged.name.startswith(_AT_ONCE) and is_out(staging.context, staged):
                staging.discard(staged.name)

    def _begin(self, identifier: Identifier, spec: WriteSpec) -> tuple[Identifier, WriteSpec]:
        """Where and how the write goes; an older replacement is dropped. A name that nothing has needs none.

        Raises FixRequest TS1081: a log belongs to one table.
        """
        old = self.warehouse.stores.find(identifier)
        shared = None if old is None else self.warehouse.logs.find_shared(old.schema, spec.table.options)
        if shared is not None:
            raise FixRequest(
                "TS1081",
                f"{identifier} cannot be replaced by another table with the same log {shared}",
                why="its messages have the key, partitions and format of the old table; consumers cannot tell those "
                "of two tables apart",
                fix="give the new table a log of another name; or drop the old table first, with its log",
            )
        self.drop(identifier)
        state = self.warehouse.catalog.table_swap(identifier).state()
        if state is None:
            return identifier, spec
        return identifier.replacement, replace(
            spec, properties={**spec.properties, REPLACES: state}, always=True
        )

    def finish_old_log(self, identifier: Identifier) -> None:
        """All changes of the table that is about to be replaced are in its log. Raises TS17xx."""
        store = self.warehouse.stores.find(identifier)
        publisher = None if store is None else self.warehouse.logs.find_publisher(identifier)
        if store is not None and publisher is not None:
            publisher.publish(store)

    def check_logs(self, identifier: Identifier, stage: str) -> None:
        """Before a staged one takes its place: the old log is complete, the new one can be sent. Raises TS1082."""
        try:
            self.finish_old_log(identifier)
        except TablestoreError as error:
            raise unready_log(str(identifier), stage, error) from error
        self.warehouse.logs.check_staged(identifier.replacement, stage)

    def is_awaited(self, identifier: Identifier, stage: str) -> bool:
        """Whether the name is still what the replacement was made for."""
        found = self.warehouse.stores.get(identifier.replacement).staging.find(stage)
        made_for = None if found is None else (found.snapshot.properties or {}).get(REPLACES)
        return made_for == self.warehouse.catalog.table_swap(identifier).state()

    def publish(self, identifier: Identifier, stage: str) -> WriteReport:
        """First in itself, where nobody sees it, then it takes the name.

        Raises NotFound TS1316, TS1414, RetryError TS1480.
        """
        store = self.warehouse.stores.get(identifier.replacement)
        report = report_of(identifier, store.staging.publish(stage, keep=True))
        self.warehouse.catalog.table_swap(identifier).take_place()
        self.warehouse.relations.forget(identifier)
        self.warehouse.relations.forget(identifier.replacement)
        self.warehouse.iceberg.drop_former(identifier)
        return report

    def clear(self, identifier: Identifier) -> None:
        """Delete what the table of the name has replaced, with its log; one that does not answer stays."""
        table_swap = self.warehouse.catalog.table_swap(identifier)
        if table_swap.is_cleared():
            return
        old = table_swap.replaced_schema()
        self.warehouse.catalog.runtime.crash_point("replace.sent")
        with suppress(TablestoreError):
            self.warehouse.logs.drop(identifier, old)
        table_swap.clear()

    def drop(self, identifier: Identifier, stage: str | None = None) -> None:
        """The one that waits, when `stage` is None or its name; none is fine."""
        waiting = identifier.replacement
        store = self.warehouse.stores.find(waiting)
        if store is not None and (stage is None or store.staging.find(stage) is not None):
            dropped = self.warehouse.catalog.drop_table(waiting)
            self.warehouse.relations.forget(waiting)
            with suppress(TablestoreError):  # its claim may be taken over
                self.warehouse.logs.drop(waiting, dropped)
