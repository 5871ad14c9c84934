"""What an aggregate function is: the values of a column over the versions of each key become one. Columns at a time.

INVARIANT  the outcome is that of Paimon's function over the same versions in the same order, value by value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.lsm.version_groups import VersionGroups


@dataclass(frozen=True)
class AggregatedColumn:
    """A column and the options of its function: `distinct`, `delimiter` (of listagg), `nested_key` and `count_limit`
    (of nested_update), `time` (of merge_map_with_keytime).
    """

    name: str
    type: DataType
    distinct: bool = False
    delimiter: str = ","
    nested_key: tuple[str, ...] = ()
    count_limit: int | None = None
    time: str = ""


class AggregateFunction(ABC):
    """retracts      it can take a value back
    is_ordered    the order of the versions makes a difference
    appends_late  a late version of a sequence group is taken in like any other
    """

    retracts: ClassVar[bool] = False
    is_ordered: ClassVar[bool] = False
    appends_late: ClassVar[bool] = False

    @property
    def changes_lone(self) -> bool:
        """Whether the aggregate of a single value may be another value."""
        return False

    @abstractmethod
    def aggregate(self, values: pa.ChunkedArray, groups: VersionGroups) -> pa.ChunkedArray:
        """One value for each key of `groups`, whose rows are numbers of `values`. Raises FixData TS1659, TS1660."""


def no_retraction(column: str) -> FixData:
    """FixData TS1660."""
    return FixData(
        "TS1660",
        f"the aggregate function of column {column} cannot take a value back",
        why="a row with the kind -U or -D met another version of its key",
        fix=f"set 'fields.{column}.ignore-retract' = 'true', or leave out retractions ('ignore-delete' = 'true')",
    )


def overflow(column: AggregatedColumn, function: str, java: str) -> FixData:
    """FixData TS1659."""
    return FixData(
        "TS1659",
        f"column {column.name}: {function} is outside of {type_to_text(column.type)}",
        why=f"the result does not fit; {java}",
        fix="give the column a wider type, or correct the values",
    )


def wrong_type(column: AggregatedColumn, function: str, expected: str) -> FixRequest:
    """FixRequest TS1662."""
    return FixRequest(
        "TS1662",
        f"column {column.name} cannot be aggregated by {function}",
        why=f"its type is {type_to_text(column.type)}; expected {expected}",
        fix="use another function, or another type",
    )
