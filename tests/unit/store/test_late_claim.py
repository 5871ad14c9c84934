"""A claim that comes after an expiry: its number is free on an object store, and must not be taken."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.doubles.memory_store import MemoryFileIO
from tests.unit.store.expiry_world import newest
from tests.unit.store.table_world import make_table, open_table, put, row, rows_of

T = TypeVar("T")


class SlowStore(MemoryFileIO):
    """A put whose writer sleeps between its check and the put; what runs at once, runs in the worst order."""

    sleep: Callable[[], None] | None = None

    def create_exclusive(self, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        """As FileIO."""
        if self.sleep is None or not path.endswith("/snapshot-2"):
            return super().create_exclusive(path, data, check=check)
        assert check is not None
        sleep, self.sleep = self.sleep, None
        check()
        sleep()
        return super().create_exclusive(path, data)

    def run_together(self, calls: Sequence[Callable[[], T]]) -> Sequence[T]:
        """As FileIO, the last one first."""
        return [call() for call in reversed(calls)][::-1]


def test_a_claim_of_an_expired_number_hides_no_later_snapshot() -> None:
    """The others have committed and expired its number meanwhile: it is refused, and committed again on the newest."""
    fileio = SlowStore("s3://bucket/w", itertools.count(1_700_000_000_000).__next__)
    store = make_table(fileio.root, fileio=fileio)
    put(store, row(1))

    def others() -> None:
        other = open_table(fileio.root, fileio=fileio)
        for number in (2, 3, 4):
            put(other, row(number))
        assert other.expire(newest(1)).snapshots == 3

    fileio.sleep = others
    put(open_table(fileio.root, fileio=fileio), row(5))
    after = open_table(fileio.root, fileio=fileio)
    assert after.snapshots.list_ids() == (4, 5)
    assert [one["id"] for one in rows_of(after)] == [1, 2, 3, 4, 5]
