"""Which staged snapshots are past their retention (`tablestore.staged-retention`). Pure, the time is an argument.

CHANGE     when a staged snapshot is too old (option tablestore.staged-retention)
Rule       1 its newest commit is longer ago than the retention; what was built from it is dropped with it
           2 it stays when it, or something built from it, is published and only its log is pending
           3 it stays when it, or something built from it, was written or tested within the last hour: a run uses it
           4 it stays when it waits for a person: publish='manual', and all its tests have passed. So does what was
             built from such a staged snapshot, if its own tests have passed
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tablestore_engine.runtime.moments import moment_text
from tablestore_engine.store.stage.stage_drop import IN_USE_MS
from tablestore_engine.warehouse.gate.gate_rule import GateBook, Staged, order_group, short_name

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000


@dataclass(frozen=True)
class ExpiredStage:
    """`root`: past its retention; `item` is that, or was built from it. `now_ms`: when this was found."""

    item: Staged
    root: Staged
    now_ms: int

    def line(self, *, is_dry: bool = False) -> str:
        """For the log: what is dropped, and why."""
        item, verb = self.item, "would be dropped" if is_dry else "is dropped"
        what = f"{item.table}: staged snapshot {item.name} (snapshot {item.snapshot}) {verb}"
        if item.key != self.root.key:
            return f"{what} with {self.root.name} of {self.root.table}: it was built from its rows"
        age, kept = _span(self.now_ms - item.written_ms), _span(item.kept_ms or 0)
        return f"{what}: it was written {age} ago, tablestore.staged-retention is {kept}; {_tests_text(item)}"


def pick_expired(book: GateBook, now_ms: int, *, spared: Collection[str] = ()) -> tuple[ExpiredStage, ...]:
    """What is to be dropped, what was built from another one before it. `spared`: names of staged snapshots in use."""
    found: dict[tuple[str, str], ExpiredStage] = {}
    for root in order_group(book.staged):
        until = _own_end(root, book)
        if root.key in found or until is None or now_ms < until:
            continue
        family = book.with_children(root)
        if not any(_is_used(one, now_ms) or one.name in spared for one in family):
            for one in family:
                found.setdefault(one.key, ExpiredStage(one, root, now_ms))
    order = order_group(tuple(one.item for one in found.values()))
    return tuple(found[item.key] for item in reversed(order))


def kept_until_ms(item: Staged, book: GateBook) -> int | None:
    """When it, or something that it was built from, is past its retention; None: it is kept until it is dropped."""
    if item.is_out:
        return None
    ends = [_own_end(one, book) for one in (item, *_ancestors(item, book))]
    return min((end for end in ends if end is not None), default=None)


def kept_text(until_ms: int | None) -> str:
    """`2026-12-05T04:21:00.000Z`, or that it has no end."""
    return "published or dropped" if until_ms is None else moment_text(until_ms)


def _own_end(item: Staged, book: GateBook) -> int | None:
    """Rules 1, 2 and 4, for it alone."""
    if item.kept_ms is None or item.is_out or _waits_for_person(item, book):
        return None
    return item.written_ms + item.kept_ms


def _waits_for_person(item: Staged, book: GateBook) -> bool:
    if not item.is_green:
        return False
    return any(one.policy == "manual" and one.is_green for one in (item, *_ancestors(item, book)))


def _is_used(item: Staged, now_ms: int) -> bool:
    """Rules 2 and 3."""
    return item.is_out or now_ms - item.used_ms < IN_USE_MS


def _ancestors(item: Staged, book: GateBook) -> tuple[Staged, ...]:
    """Staged snapshots that it was built from, at any depth, and that readers do not see."""
    found: dict[tuple[str, str], Staged] = {}
    left = [item]
    while left:
        parents = [book.find(read) for read in left.pop().parents]
        new = [one for one in parents if one is not None and not one.is_out and one.key not in found]
        found |= {one.key: one for one in new}
        left += new
    found.pop(item.key, None)
    return tuple(found.values())


def _tests_text(item: Staged) -> str:
    said = [
        f"{word}: {', '.join(short_name(test) for test in tests)}"
        for word, tests in (("failed tests", item.red_gates), ("tests without a result", item.missing_gates))
        if tests
    ]
    return "; ".join(said) or ("all tests have passed" if item.gates else "it has no tests")


def _span(millis: int) -> str:
    """In whole days or hours."""
    if millis >= 2 * _DAY_MS or millis % _DAY_MS == 0:
        return f"{millis // _DAY_MS} d"
    return f"{millis // _HOUR_MS} h"
