"""Which staged rows a node of this invocation reads.

INVARIANT  pure.
"""

from __future__ import annotations

from collections.abc import Collection

from tablestore_engine.spi import GateBook, Staged


def branch_of(invocation: str) -> str:
    """By its id, so that two runs never share one."""
    return f"dbt_{invocation.replace('-', '')[:12]}"


def is_test_about(item: Staged, test: str, book: GateBook, mine: Collection[tuple[str, str]]) -> bool:
    """What the test gates, and what waits for other tables.

    Rows that another test refused stay out of it: what is built today must not be bound to them.
    """
    if any(red != test for red in item.red_gates):
        return False
    if item.red_gates and any(one.key in mine and test in one.gates for one in book.staged):
        return False
    return test in item.gates or not item.gates
