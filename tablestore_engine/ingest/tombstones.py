"""Tombstones that only repeat a delete: Debezium sends one after each delete, for compacted topics."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tablestore_engine.log.message_source import RawMessages

REPEATED = "tombstones after their delete"


@dataclass
class TombstoneCount:
    """`_last`: partition → key of its last message so far, if that was a delete with a value."""

    _last: dict[int, bytes | None] = field(default_factory=dict)

    def take(self, raw: RawMessages, deletes: npt.NDArray[np.int64]) -> int:
        """How many messages are a tombstone directly after the delete of the same key, in the same partition.

        `deletes`: numbers of the messages of this batch that delete a row, tombstones among them.
        """
        with_value: set[int] = {number for number in deletes.tolist() if raw.values[number] is not None}
        count: int = sum(
            raw.keys[number] is not None and raw.keys[number] == self._key_before(raw, number, with_value)
            for number in deletes.tolist()
            if raw.values[number] is None
        )
        partitions, places = np.unique(raw.partitions[::-1], return_index=True)
        for partition, place in zip(partitions.tolist(), places.tolist(), strict=True):
            number = len(raw) - 1 - place
            self._last[partition] = raw.keys[number] if number in with_value else None
        return count

    def _key_before(self, raw: RawMessages, number: int, with_value: set[int]) -> bytes | None:
        """Key of the message before it in its partition, if that is a delete with a value."""
        partition = raw.partitions[number]
        for before in range(number - 1, -1, -1):
            if raw.partitions[before] == partition:
                return raw.keys[before] if before in with_value else None
        return self._last.get(int(partition))
