"""A consumer's messages as columns: what it received together, and what their headers say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
from confluent_kafka import Message

from tablestore_engine.log.followed_log import NO_SNAPSHOT, UNSAID, Messages
from tablestore_engine.log.kafka.message_headers import KIND, KIND_OF_HEADER, SNAPSHOT


@dataclass(frozen=True)
class MessageRun:
    """`offsets[i]`: of message i; `kinds` and `snapshots` None: headers were not read.

    WHY bytes and not the client's messages: Python's collector goes through those again and again, which took a third
    of the time of a reader that holds 100,000 of them.
    """

    partition: int
    offsets: npt.NDArray[np.int64]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    kinds: npt.NDArray[np.int8] | None = None
    snapshots: npt.NDArray[np.int64] | None = None

    @classmethod
    def of(cls, messages: Sequence[Message], *, with_headers: bool) -> MessageRun:
        """All of one partition, at least one."""
        count = len(messages)
        kinds = snapshots = None
        if with_headers:
            kinds, snapshots = np.full(count, UNSAID, np.int8), np.full(count, NO_SNAPSHOT, np.int64)
            _read_headers(messages, kinds, snapshots)
        return cls(
            messages[0].partition() or 0,
            np.fromiter((message.offset() for message in messages), np.int64, count),
            [message.key() for message in messages],
            [message.value() for message in messages],
            kinds,
            snapshots,
        )

    def __len__(self) -> int:
        return len(self.offsets)

    def split(self, count: int) -> tuple[MessageRun, MessageRun]:
        return self._cut(slice(count)), self._cut(slice(count, None))

    def _cut(self, part: slice) -> MessageRun:
        return MessageRun(
            self.partition,
            self.offsets[part],
            self.keys[part],
            self.values[part],
            None if self.kinds is None else self.kinds[part],
            None if self.snapshots is None else self.snapshots[part],
        )


def to_columns(runs: Sequence[MessageRun], reached: Mapping[int, int], *, with_headers: bool) -> Messages:
    """In the order of the runs; without headers nothing says kinds and snapshots."""
    count = sum(map(len, runs))
    kinds, snapshots = np.full(count, UNSAID, np.int8), np.full(count, NO_SNAPSHOT, np.int64)
    if with_headers and count:
        kinds = np.concatenate([run.kinds for run in runs if run.kinds is not None])
        snapshots = np.concatenate([run.snapshots for run in runs if run.snapshots is not None])
    none = np.empty(0, np.int64)
    return Messages(
        np.concatenate([none, *(np.full(len(run), run.partition) for run in runs)]),
        np.concatenate([none, *(run.offsets for run in runs)]),
        list(chain.from_iterable(run.keys for run in runs)),
        list(chain.from_iterable(run.values for run in runs)),
        kinds,
        snapshots,
        reached,
    )


def _read_headers(
    messages: Sequence[Message], kinds: npt.NDArray[np.int8], snapshots: npt.NDArray[np.int64]
) -> None:
    for number, message in enumerate(messages):
        headers = message.headers()
        for name, text in headers if isinstance(headers, list) else ():
            if name == SNAPSHOT:
                snapshots[number] = int(text) if text is not None and text.isdigit() else NO_SNAPSHOT
            elif name == KIND and isinstance(text, bytes):
                kinds[number] = KIND_OF_HEADER.get(text, UNSAID)
