"""The source offsets of a table: stored in its own snapshots, and committed with the rows.

Properties `tablestore.positions`   {source: position}, the same in every later snapshot until a commit moves one
           `tablestore.moved`       {source: [before, after]} of this very commit; [after] alone: whatever it was
CHANGE     the source offsets of a table
Source     whoever reads it gives it a name that means this source and no other, and texts that only he reads
INVARIANT  rows and position are one claim: who finds another position than he began with has committed nothing.
INVARIANT  a snapshot of another engine says nothing: the one before it counts. Where that has expired nobody can tell,
           and that is written down (UNKNOWN) instead of a guess.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.metadata.commit_history import RECENT_PROPERTY
from tablestore_engine.store.metadata.snapshots import SnapshotStore

POSITIONS_PROPERTY, MOVED_PROPERTY = "tablestore.positions", "tablestore.moved"
UNKNOWN = "unknown"


@dataclass(frozen=True)
class PositionStep:
    """`before` None: nothing was read of the source; `after` None: it is forgotten.

    `is_reset`: whatever it was before (a full refresh replaces the rows as well).
    """

    before: str | None
    after: str | None
    is_reset: bool = False


Steps = Mapping[str, PositionStep]
_EACH = "*"
FORGET_ALL: Steps = {_EACH: PositionStep(None, None, is_reset=True)}  # of each source that the base knows


def positions_of(snapshots: SnapshotStore, snapshot: Snapshot | None) -> Mapping[str, str]:
    """Source → position. Raises FixRequest TS1470 where nobody can tell."""
    found = _find(snapshots, snapshot)
    if found is None:
        raise FixRequest(
            "TS1470",
            f"how far {snapshots.layout.root} has got with its sources is unknown",
            why="another engine wrote its newest snapshots, which say nothing of it, and those before have expired",
            fix="build it again: a full refresh sets rows and positions together",
        )
    return found


def check_steps(
    snapshots: SnapshotStore, base: Snapshot | None, given: Mapping[str, str], steps: Steps
) -> Mapping[str, str]:
    """Properties of a snapshot on `base`: `given`, with positions as they are then.

    Raises RetryError TS1471 where a source is at another position than the step begins at, FixRequest TS1470.
    """
    kept = {name: text for name, text in given.items() if name not in (POSITIONS_PROPERTY, MOVED_PROPERTY)}
    found = _find(snapshots, base)
    if found is None:
        if any(not step.is_reset for step in steps.values()):
            positions_of(snapshots, base)
        if not steps:
            return {**kept, POSITIONS_PROPERTY: UNKNOWN}
    known = dict(found or {})
    for source, step in steps.items():
        if not step.is_reset and known.get(source) != step.before:
            raise _moved(snapshots.layout.root, source, known.get(source), step)
        known.pop(source, None)
        if step.after is not None:
            known[source] = step.after
    moved = encode_steps(steps) if steps else {}
    texts = {POSITIONS_PROPERTY: _dump(known)} if known else {}
    return {**kept, **moved, **texts}


def steps_on(snapshots: SnapshotStore, base: Snapshot | None, properties: Mapping[str, str]) -> Steps:
    """Of a commit on `base`: what encode_steps wrote, with each source that FORGET_ALL means there.

    None where the positions of the base are unknown (TS1470): no reader resumes from them.
    """
    steps = steps_of(properties)
    if _EACH not in steps:
        return steps
    forgotten = dict.fromkeys(_find(snapshots, base) or {}, FORGET_ALL[_EACH])
    return {**forgotten, **{source: step for source, step in steps.items() if source != _EACH}}


def encode_steps(steps: Steps) -> dict[str, str]:
    """As a property of the commit."""
    pairs = {
        source: [step.after] if step.is_reset else [step.before, step.after] for source, step in steps.items()
    }
    return {MOVED_PROPERTY: _dump(pairs)}


def steps_of(properties: Mapping[str, str]) -> Steps:
    """What encode_steps wrote; none where it wrote nothing."""
    pairs = json.loads(properties.get(MOVED_PROPERTY, "{}"))
    return {
        source: PositionStep(None, pair[0], is_reset=True) if len(pair) == 1 else PositionStep(*pair)
        for source, pair in pairs.items()
    }


def joined_steps(first: Steps, then: Steps) -> Steps:
    """Both, one behind the other."""
    joined = dict(first)
    for source, step in then.items():
        before = first.get(source)
        if step.is_reset or before is None:
            joined[source] = step
        else:
            joined[source] = PositionStep(before.before, step.after, before.is_reset)
    return joined


def steps_back(snapshots: SnapshotStore, start: Snapshot, past: Snapshot) -> Steps:
    """Of a table at `start` that gets the rows of `past`. Raises FixRequest TS1470."""
    now, then = _find(snapshots, start), _find(snapshots, past)
    if then is None and now:
        then = positions_of(snapshots, past)
    now, then = now or {}, then or {}
    names = sorted({*now, *then})
    return {
        one: PositionStep(None, then.get(one), is_reset=True)
        for one in names
        if now.get(one) != then.get(one)
    }


def _find(snapshots: SnapshotStore, snapshot: Snapshot | None) -> Mapping[str, str] | None:
    """None where nobody can tell."""
    at = snapshot
    while at is not None:
        properties = at.properties or {}
        text = properties.get(POSITIONS_PROPERTY)
        if text is not None:
            return None if text == UNKNOWN else json.loads(text)
        if RECENT_PROPERTY in properties:  # ours: it would have said so
            return {}
        if at.id == 1:
            return {}
        at = snapshots.find(at.id - 1)
        if at is None:
            return None
    return {}


def _dump(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _moved(root: str, source: str, found: str | None, step: PositionStep) -> RetryError:
    return RetryError(
        "TS1471",
        f"another run has moved {root} on in {source}",
        why=f"these rows were made after {step.before or 'nothing'}, and the table is at {found or 'nothing'} now",
        fix="nothing was committed: run it again, it begins where the table is",
    )
