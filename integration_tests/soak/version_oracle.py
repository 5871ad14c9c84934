"""What a table of any merge engine must hold: versions of a key folded one after the other, in plain Python.

INVARIANT  as interop/oracle.py, it knows nothing of files and shares no code with the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from integration_tests.interop.oracle import Kinded, Oracle, Stored
from integration_tests.interop.rows import Change
from integration_tests.soak.killed_tables import COLUMNS, KilledTable

_ID = {name: number for number, name in enumerate(COLUMNS)}
_KEY = (_ID["id"], _ID["day"])
Fold = Callable[[Stored | None, str, Stored], Stored | None]


def _adds(kind: str) -> bool:
    return kind in ("+I", "+U")


def _deduplicate(_: Stored | None, kind: str, new: Stored) -> Stored | None:
    return new if _adds(kind) else None


def _first(old: Stored | None, _: str, new: Stored) -> Stored | None:
    return new if old is None else old


def _both(old: Any, new: Any, join: Callable[[Any, Any], Any]) -> Any:
    return new if old is None else old if new is None else join(old, new)


def _taken_back(old: Any, new: Any) -> Any:
    return old if new is None else -new if old is None else old - new


def _aggregate(old: Stored | None, kind: str, new: Stored) -> Stored | None:
    s, g, a, b = _ID["s"], _ID["g"], _ID["a"], _ID["b"]
    before = old or {key: new[key] if key in _KEY else None for key in new}
    if _adds(kind):
        return {
            **before,
            s: _both(before[s], new[s], lambda x, y: x + y),
            g: _both(before[g], new[g], max),
            a: _both(before[a], new[a], lambda x, y: f"{x},{y}"),
            b: before[b] if new[b] is None else new[b],
        }
    return {**before, s: _taken_back(before[s], new[s]), b: before[b] if new[b] is None else None}


def _aggregate_removing(old: Stored | None, kind: str, new: Stored) -> Stored | None:
    """The columns beside the sum have the newest value that is not NULL."""
    if not _adds(kind):
        return None
    s = _ID["s"]
    filled = _fill(old, kind, new)
    assert filled is not None
    return {**filled, s: _both(None if old is None else old[s], new[s], lambda x, y: x + y)}


def _fill(old: Stored | None, kind: str, new: Stored) -> Stored | None:
    if not _adds(kind):
        return None
    return new if old is None else {key: old[key] if value is None else value for key, value in new.items()}


def _is_late(old: Stored | None, new: Stored) -> bool:
    g = _ID["g"]
    return old is not None and old[g] is not None and new[g] < old[g]


def _groups(old: Stored | None, kind: str, new: Stored) -> Stored | None:
    """`g` orders `a` and `s`; `-D` removes the row unless it is late. A row without `g` has neither of them."""
    g, a, s, b = _ID["g"], _ID["a"], _ID["s"], _ID["b"]
    if not _adds(kind):
        if new[g] is None or _is_late(old, new):
            return old
        return None
    if old is None:
        return new
    made = {**old, b: old[b] if new[b] is None else new[b]}
    return made if new[g] is None or _is_late(old, new) else {**made, g: new[g], a: new[a], s: new[s]}


def _sums(old: Stored | None, kind: str, new: Stored) -> Stored | None:
    """As `_groups`, and `s` adds up what comes, late rows too."""
    s, g = _ID["s"], _ID["g"]
    made = _groups(old, kind, new)
    if old is None or made is None or new[g] is None:
        return made
    return {**made, s: _both(old[s], new[s], lambda x, y: x + y)}


FOLDS: Mapping[str, Fold] = {
    "deduplicate": _deduplicate,
    "first-row": _first,
    "aggregation": _aggregate,
    "aggregation, removing": _aggregate_removing,
    "partial-update, removing": _fill,
    "partial-update, groups": _groups,
    "partial-update, sums": _sums,
}


class VersionOracle(Oracle):
    """An Oracle whose upserts and deletes are versions that the table's merge engine folds."""

    def __init__(self, table: KilledTable) -> None:
        """Empty."""
        super().__init__(table.schema)
        self._fold, self._table = FOLDS[table.engine], table

    def apply(self, changes: Iterable[Kinded]) -> list[Change]:
        """The net change of every key whose row is another one then."""
        listed = list(changes)
        before: dict[Any, Stored | None] = {}
        for (kind, _), stored in zip(listed, self._stored([row for _, row in listed]), strict=True):
            key = self._key(stored)
            before.setdefault(key, self._kept.get(key))
            folded = self._fold(self._kept.get(key), kind, self._placed(stored, key))
            if folded is None:
                self._kept.pop(key, None)
            else:
                self._kept[key] = folded
        pairs = [(old, self._kept.get(key)) for key, old in before.items()]
        return [change for old, new in pairs for change in self._net(old, new, skip_equal=True)]

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> list[Change]:
        """What a statement says the rows of these keys are, whatever the engine is."""
        found: list[Change] = []
        for stored in self._stored(list(rows)):
            key = self._key(stored)
            found += self._net(self._kept.get(key), stored, skip_equal=True)
            self._kept[key] = stored
        return found

    def _placed(self, stored: Stored, key: Any) -> Stored:
        """A version of a key in another partition: it goes where the row is, unless it takes the row's place."""
        old, day = self._kept.get(key), _ID["day"]
        stays = self._table.is_crossing and self._table.engine != "deduplicate" and old is not None
        return {**stored, day: old[day]} if stays and old is not None else stored

    def _net(self, old: Stored | None, new: Stored | None, *, skip_equal: bool = False) -> list[Change]:
        """A row that moves goes in its old partition and comes in its new one."""
        if (
            old is not None
            and new is not None
            and self._table.is_crossing
            and old[_ID["day"]] != new[_ID["day"]]
        ):
            return [*super()._net(old, None), *super()._net(None, new)]
        return super()._net(old, new, skip_equal=skip_equal)
