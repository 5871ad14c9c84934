"""Where messages of others come from: the port of topics and files.

Position   a text that only its source understands: where to read on in each partition, and what the source was, so that
           another one of the same name is noticed. As an object it may have the member `table`, of which the source
           takes no notice
INVARIANT  only what is decided is read: no message of a transaction that is open or was given up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

_TABLE = "table"


def with_table(position: str, table: str | None) -> str:
    """None: of none, or of several. A position that is no object stays as it is."""
    said = json.loads(position)
    if not isinstance(said, dict) or said.get(_TABLE) == table:
        return position
    said.pop(_TABLE, None)
    named = said if table is None else {**said, _TABLE: table}
    return json.dumps(named, ensure_ascii=False, separators=(",", ":"))


def table_of(position: str | None) -> str | None:
    """None where nobody has noted it, or where it is no object, as others may have written it."""
    try:
        said = json.loads(position or "null")
    except ValueError:
        return None
    return str(said[_TABLE]) if isinstance(said, dict) and said.get(_TABLE) else None


@dataclass(frozen=True)
class RawMessages:
    """In the order of each partition. `reached`: the position behind all of them. `names`: of partitions."""

    partitions: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    reached: str
    names: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def partition_name(self, number: int) -> str:
        partition = int(self.partitions[number])
        return self.names.get(partition, str(partition))

    def place(self, number: int) -> str:
        """`partition 3, offset 71`, or `orders.jsonl, byte 400`."""
        partition, offset = int(self.partitions[number]), int(self.offsets[number])
        if partition in self.names:
            return f"{self.names[partition]}, byte {offset}"
        return f"partition {partition}, offset {offset}"


class MessageSource(Protocol):
    """Used by one thread at a time."""

    @property
    def source_id(self) -> str:
        """Names its position in the table: `kafka:orders`, `files:…`."""

    @property
    def title(self) -> str:
        """For messages: `topic orders`."""

    @property
    def incarnation(self) -> str:
        """Tells it from another one of the same name, as a position does."""

    def begin(self) -> str:
        """The position before all that is there."""

    def ends(self) -> str:
        """The position behind all that is decided now."""

    def check(self, position: str) -> None:
        """Raises when messages behind the position are gone, or it is of another source."""

    def is_at(self, position: str, end: str) -> bool:
        """Whether nothing is left between the two."""

    def is_one_line(self) -> bool:
        """Whether all its messages are in one order."""

    def read(
        self, position: str, rows_max: int, bytes_max: int, wait_s: float, most_s: float | None = None
    ) -> RawMessages:
        """On from `position`; ends with so many messages or bytes, or when nothing came for `wait_s`.

        `most_s`: of a source that does not pause, so long from its begin on, once there is a message.

        REQUIRES a position that `check` has taken, or the last one that was reached.
        """

    def close(self) -> None:
        """Give connections up."""
