"""What the installed pyspark can do for a stream in Python.

WHY        pyspark 4.1 asks a source for its newest offset without saying where the query is: no start, no limits, and
           availableNow takes one batch of everything. Rows would come in other batches than the checkpoint says.
"""

from __future__ import annotations

import re
from abc import ABC
from dataclasses import dataclass

from tablestore_engine.errors import Unsupported

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # pyspark 4.1: check_version refuses before one of these is used

    class ReadLimit:  # type: ignore[no-redef]
        """Stand-in."""

    @dataclass
    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """Stand-in."""

    @dataclass
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """Stand-in."""

        max_rows: int

    class SupportsTriggerAvailableNow(ABC):  # type: ignore[no-redef]  # noqa: B024 - pyspark's name, without its method
        """Stand-in."""


_LEAST = (4, 2)
__all__ = ["ReadAllAvailable", "ReadLimit", "ReadMaxRows", "SupportsTriggerAvailableNow", "check_version"]


def check_version(version: str) -> None:
    """Raises Unsupported TS1448."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < _LEAST:
        raise Unsupported(
            "TS1448",
            f"a stream from tablestore needs pyspark {'.'.join(map(str, _LEAST))}, and this is {version}",
            why="before it, Spark gives a source in Python neither the offset of its query nor the limit of a batch",
            fix="install pyspark 4.2 or later; batch reads and both ways of writing work with this one",
        )
