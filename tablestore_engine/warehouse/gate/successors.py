"""A write that has to be a table of its own: complete beside what has the name, it takes its place, at once or later.

Names      Successors   write one, publish and drop the one that waits for a name
Steps      the rows as a staged snapshot of the new table → with a stage of the caller's it waits for its tests;
           without, it takes the place, and what it replaced is deleted
WHY        a branch shares key, partitions and folder with its table; a view has none of these, and another key is
           another table. Its tests read it through the same pins as any staged snapshot (catalog.name_lookup).
INVARIANT  the old relation stays as it is until the new one has its place (catalog.succession); one waits at most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.succession import REPLACES
from tablestore_engine.errors import RetryError, Unsupported
from tablestore_engine.store.table_traits import has_log
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.incoming_rows import Incoming
from tablestore_engine.warehouse.write.write_spec import WriteSpec
from tablestore_engine.warehouse.write_report import WriteReport, report_of


@dataclass(frozen=True)
class Successors:
    """Of one warehouse."""

    warehouse: Warehouse

    def write(self, identifier: Identifier, incoming: Incoming, spec: WriteSpec) -> WriteReport:
        """Raises Unsupported TS1081, RetryError TS1480, and what a write raises; then the old relation is as it was."""
        place, begun = self._begin(identifier, spec)
        if spec.stage is not None or not place.is_successor:
            return self.warehouse.write_incoming(place, incoming, begun)
        stage = f"beside-{self.warehouse.catalog.runtime.new_uuid()}"  # who replaces it too has another
        try:
            report = self.warehouse.write_incoming(place, incoming, replace(begun, stage=stage))
        except BaseException:
            self.drop(identifier, stage)
            raise
        try:
            done = self.publish(identifier, stage)
        except RetryError:  # the name means something else than it was made for
            self.drop(identifier, stage)
            raise
        self.clear(identifier)
        self.warehouse.stores.get(identifier).staging.discard(stage)
        return replace(report, table=identifier, snapshot_id=done.snapshot_id, staged=None)

    def _begin(self, identifier: Identifier, spec: WriteSpec) -> tuple[Identifier, WriteSpec]:
        """Where and how the write goes; an older successor is dropped. A name that nothing has needs none.

        Raises Unsupported TS1081: a log belongs to one table.
        """
        old = self.warehouse.stores.find(identifier)
        self.drop(identifier)
        state = self.warehouse.catalog.succession(identifier).state()
        if state is None:
            return identifier, spec
        if has_log(spec.table.options) or (old is not None and has_log(old.schema.options)):
            raise Unsupported(
                "TS1081",
                f"{identifier} cannot be staged beside what has the name now",
                why="one of the two has a log, and a log belongs to one table",
                fix="write it without a stage, after dropping the old one",
            )
        return identifier.successor, replace(
            spec, properties={**spec.properties, REPLACES: state}, always=True
        )

    def is_awaited(self, identifier: Identifier, stage: str) -> bool:
        """Whether the name is still what the successor was made for."""
        found = self.warehouse.stores.get(identifier.successor).staging.find(stage)
        made_for = None if found is None else (found.snapshot.properties or {}).get(REPLACES)
        return made_for == self.warehouse.catalog.succession(identifier).state()

    def publish(self, identifier: Identifier, stage: str) -> WriteReport:
        """First in itself, where nobody sees it, then it takes the name.

        Raises NotFound TS1316, TS1414, RetryError TS1480.
        """
        store = self.warehouse.stores.get(identifier.successor)
        report = report_of(identifier, store.staging.publish(stage, keep=True))
        self.warehouse.catalog.succession(identifier).take_place()
        self.warehouse.relations.forget(identifier)
        self.warehouse.relations.forget(identifier.successor)
        return report

    def clear(self, identifier: Identifier) -> None:
        """Delete what the table of the name has replaced."""
        self.warehouse.catalog.succession(identifier).clear()

    def drop(self, identifier: Identifier, stage: str | None = None) -> None:
        """The one that waits, when `stage` is None or its name; none is fine."""
        waiting = identifier.successor
        store = self.warehouse.stores.find(waiting)
        if store is not None and (stage is None or store.staging.find(stage) is not None):
            self.warehouse.catalog.drop_table(waiting)
            self.warehouse.relations.forget(waiting)
