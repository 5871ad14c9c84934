"""The progress of a consumer: a position in Paimon's consumer file, which keeps expiry from what is not read yet.

CHANGE     when a consumer's progress is stored
Steps      commit: is it forward? → replace the file → does the snapshot still count?
INVARIANT  a commit that returned holds its snapshot: expiry hides first and looks for consumers then, we write first
           and look for the snapshot then. One of both sees the other.
PAIMON     `nextSnapshot` is all that others know: a reader of theirs that takes over a consumer of ours gets whole
           snapshots, those again that ours was within. In the rows of a snapshot they cannot go on: see the docs.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.consumer import Consumer
from tablestore_engine.store.metadata.consumer_files import ConsumerStore
from tablestore_engine.stream.position import Part, Position, decode_position, encode_position
from tablestore_engine.stream.snapshot_enumerator import SnapshotEnumerator


@dataclass(frozen=True)
class ConsumerProgress:
    """Of the consumer `name`."""

    consumers: ConsumerStore
    enumerator: SnapshotEnumerator
    name: str

    def find(self) -> Position | None:
        """Where it goes on; None when it was never here. Raises FixData TS1391, FixRequest TS1107."""
        found = self.consumers.find(self.name)
        table = self.enumerator.context.guard.identity
        return None if found is None or table is None else progress_of(found, table)

    def commit(self, position: Position, *, backward: bool = False) -> None:
        """Raises FixRequest TS1352, NotFound TS1336, TS1337."""
        self.enumerator.check_table(position)
        before = self.find()
        if before is not None and before.order > position.order and not backward:
            raise FixRequest(
                "TS1352",
                f"consumer {self.name} does not go back to snapshot {position.snapshot}",
                why=f"it resumes at snapshot {before.snapshot}: another reader with the same id has been further",
                fix="give each reader an id of its own; to go back on purpose: commit(backward=True), or "
                "tablestore consumers --reset",
            )
        self.consumers.put(self.name, Consumer(max(position.snapshot, 1), encode_position(position)))
        if position.part is Part.LOG:
            self.enumerator.check_base(position)
        else:
            self.enumerator.next_snapshot(position)


def progress_of(consumer: Consumer, table: str) -> Position:
    """Our own position, unless another engine moved the consumer since, or the table is another one."""
    if consumer.position is not None:
        try:
            own = decode_position(consumer.position)
        except FixRequest:
            own = None
        if own is not None and max(own.snapshot, 1) == consumer.next_snapshot:
            return own
    return Position(table, max(consumer.next_snapshot, 1))
