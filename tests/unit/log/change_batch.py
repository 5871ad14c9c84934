"""Rows of a bucket that a test gives to a log."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class ChangeBatch:
    """The plain implementation of ChangelogRows."""

    bucket: int
    rows: pa.Table
