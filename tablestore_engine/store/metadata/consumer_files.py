"""Consumers of one branch: named readers, and how far each is.

INVARIANT  a consumer's file is replaced in one step: who looks sees the old progress or the new one.
PAIMON     other engines overwrite it in place: a file that cannot be read is looked at again, for a moment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tablestore_engine.errors import FixData, NotFound
from tablestore_engine.fileio.base import FileIO, FileStatus
from tablestore_engine.format.consumer import Consumer, decode_consumer, encode_consumer
from tablestore_engine.format.json_file import DAMAGE
from tablestore_engine.format.layout import CONSUMER_PREFIX, TableLayout
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.metadata.foreign_files import put_over
from tablestore_engine.store.metadata.identity import TableGuard, is_of_another

_LOOKS, _BETWEEN_S = 5, 0.1


@dataclass(frozen=True)
class FoundConsumer:
    """`moved_ms`: when its file was written, epoch milliseconds."""

    name: str
    consumer: Consumer
    moved_ms: int


@dataclass(frozen=True)
class ConsumerStore:
    fileio: FileIO
    layout: TableLayout
    runtime: Runtime
    guard: TableGuard

    def find(self, name: str) -> Consumer | None:
        """None when there is none of that name. Raises FixData TS1391, FixRequest TS1107."""
        path = self.layout.consumer_path(name)
        for look in range(_LOOKS):
            try:
                found = decode_consumer(self.fileio.read(path))
                is_foreign = is_of_another(
                    self.fileio, self.layout.location, found.table, self.guard.identity
                )
                return None if is_foreign else replace(found, table=None)
            except NotFound:
                return None
            except DAMAGE as damage:
                if look == _LOOKS - 1:
                    raise FixData(
                        "TS1391",
                        f"what consumer {name!r} of {self.layout.location} has read is not known",
                        why=f"{path} cannot be read: {damage}",
                        fix="write its next snapshot into it (tablestore consumers --reset), or delete it "
                        "(--delete) when there is no such consumer any more",
                    ) from damage
                self.runtime.sleep(_BETWEEN_S)
        return None

    def list_all(self) -> tuple[FoundConsumer, ...]:
        """By name. Raises FixData TS1391."""
        found = []
        for status in self._listed():
            name = status.name.removeprefix(CONSUMER_PREFIX)
            consumer = self.find(name)
            if consumer is not None:
                found.append(FoundConsumer(name, consumer, status.modified_ms))
        return tuple(found)

    def list_names(self) -> tuple[str, ...]:
        """All names, also of those whose files cannot be read."""
        return tuple(status.name.removeprefix(CONSUMER_PREFIX) for status in self._listed())

    def put(self, name: str, consumer: Consumer) -> None:
        """Write its progress, whatever it was; durable on return. Raises as put_over."""
        path = self.layout.consumer_path(name)
        data = encode_consumer(replace(consumer, table=self.guard.identity))
        put_over(self.fileio, path, data, self.guard.check)

    def delete(self, name: str) -> None:
        """Forget it; a missing one is fine."""
        self.fileio.delete(self.layout.consumer_path(name))

    def list_idle(self, before_ms: int) -> tuple[str, ...]:
        """Those whose files were last written before that time."""
        return tuple(
            status.name.removeprefix(CONSUMER_PREFIX)
            for status in self._listed()
            if status.modified_ms < before_ms
        )

    def _listed(self) -> list[FileStatus]:
        return [
            one for one in self.fileio.list(self.layout.consumer_dir) if one.name.startswith(CONSUMER_PREFIX)
        ]
