"""Which snapshots go: the rules of expiry, over ids and times. Pure.

CHANGE     which snapshots expire (options snapshot.num-retained.min, snapshot.num-retained.max,
           snapshot.time-retained, snapshot.expire.limit, tablestore.expire-grace)
Rules      E earliest, L newest. Those from E on go, up to the first of
           1 L - keep_min + 1: so many always stay   2 the smallest hold   3 E + limit: so many at once
           4 the first one whose successor is younger than `retained`, unless it is older than the newest keep_max
           5 the first one whose successor is younger than `grace`: somebody may be reading it
PAIMON     the same rules (format.md#expiry) but for 5. A successor's age counts: until then the snapshot was the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tablestore_engine.store.retention import Retention


@dataclass(frozen=True)
class Hold:
    """`who` as it stands in a sentence: `consumer flink needs snapshot 7`."""

    first: int
    who: str


@dataclass(frozen=True)
class NextLook:
    """Nothing can go before the newest snapshot is `latest`, or it is `time_ms`; None: that alone changes nothing.

    It is right for the same rules without holds. Expiries and rollbacks of others only make it earlier than needed.
    """

    latest: int | None = None
    time_ms: int | None = None

    def is_due(self, latest: int, now_ms: int) -> bool:
        """Whether something may go by now."""
        by_number = self.latest is not None and latest >= self.latest
        return by_number or (self.time_ms is not None and now_ms >= self.time_ms)


@dataclass(frozen=True)
class Choice:
    """Snapshots first <= id < end go. `again`: when to look again while nothing goes; None: unknown."""

    first: int
    end: int
    reason: str
    again: NextLook | None = field(default=None, compare=False)

    @property
    def is_nothing(self) -> bool:
        return self.end <= self.first


def pick_expired(
    first: int,
    latest: int,
    time_of: Callable[[int], int | None],
    rules: Retention,
    holds: Iterable[Hold] = (),
    *,
    now_ms: int,
) -> Choice:
    """`time_of`: when a snapshot was committed (epoch ms), None when it is gone; asked only for those it decides on."""
    stops = [(latest - rules.keep_min + 1, f"the newest {rules.keep_min} stay")]
    stops += [(hold.first, hold.who) for hold in holds]
    if rules.limit is not None:
        stops.append((first + rules.limit, f"{rules.limit} go at once"))
    stop, reason = min(stops)
    too_many = first if rules.keep_max is None else latest - rules.keep_max + 1
    for at in range(first, stop):
        replaced_ms = time_of(at + 1)
        if replaced_ms is None:
            return Choice(first, at, f"snapshot {at + 1} is gone: another program deletes snapshots")
        age_ms = now_ms - replaced_ms
        if age_ms < rules.grace_ms:
            again = NextLook(time_ms=replaced_ms + rules.grace_ms)
            return Choice(first, at, f"snapshot {at} was the newest within the grace period", again)
        if at >= too_many and age_ms < rules.retained_ms:
            enough = None if rules.keep_max is None else at + rules.keep_max
            again = NextLook(enough, replaced_ms + rules.retained_ms)
            return Choice(first, at, f"snapshot {at} was the newest within the retained time", again)
    following = None if tuple(holds) else NextLook(first + rules.keep_min)
    return Choice(first, max(stop, first), reason, following)
