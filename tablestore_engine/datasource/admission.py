"""How much one micro-batch of a stream takes: whole snapshots, at least one. Pure.

CHANGE     how much one micro-batch of Spark reads
INVARIANT  the first portion is always taken: a limit makes batches smaller, it never stops a stream.
INVARIANT  portions without rows cost nothing: a compaction is no batch of its own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """None: no limit."""

    snapshots: int | None = None
    rows: int | None = None
    bytes: int | None = None

    @property
    def are_none(self) -> bool:
        """Whether everything is taken that is there."""
        return self == Limits()

    @property
    def need_sizes(self) -> bool:
        """Whether rows or bytes have to be looked up."""
        return self.rows is not None or self.bytes is not None


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Portion:
    """`rows` None: nobody knows before it is read; such a one fills what is left."""

    rows: int | None
    bytes: int

    @property
    def is_empty(self) -> bool:
        """Whether it surely has no rows."""
        return self.rows == 0


@dataclass(frozen=True)
class Admission:
    """What was taken so far, under `limits`."""

    limits: Limits
    snapshots: int = 0
    rows: int = 0
    bytes: int = 0
    is_full: bool = False

    def take(self, portion: Portion) -> Admission | None:
        """With the portion; None when it does not fit any more."""
        if portion.is_empty:
            return self
        first = self.snapshots == 0
        if not first and (self.is_full or not self._fits(portion)):
            return None
        is_full = portion.rows is None and self.limits.rows is not None
        return Admission(
            self.limits,
            self.snapshots + 1,
            self.rows + (portion.rows or 0),
            self.bytes + portion.bytes,
            is_full,
        )

    def _fits(self, portion: Portion) -> bool:
        limits = self.limits
        if limits.snapshots is not None and self.snapshots + 1 > limits.snapshots:
            return False
        if limits.rows is not None and (portion.rows is None or self.rows + portion.rows > limits.rows):
            return False
        return limits.bytes is None or self.bytes + portion.bytes <= limits.bytes
