"""The reason why a query has no deltas."""

from __future__ import annotations


class NoDelta(Exception):
    """`clause`: why the changed rows of a query do not follow from those of its tables, in SQL's words."""

    def __init__(self, clause: str) -> None:
        super().__init__(clause)
        self.clause = clause
