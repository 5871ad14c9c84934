"""By which strategy a `changed_keys` run computes its rows: what sizes say, and what earlier runs took.

CHANGE     which strategy a `changed_keys` run takes: deltas, affected keys or all rows
Rule       the cheapest one by estimates (run_estimates) from sizes and from runs with changed rows of the same power of
           ten; if there is none, of the nearest smaller power, which is a lower bound. What is not known well counts as
           faster by TRIED deviations. What all rows take grows with the rows of the inputs.
INVARIANT  all strategies give the same rows: a wrong choice costs time, nothing else. A run that is AGE runs old is
           forgotten, so that its strategy is tried again.
CRASH      a run's seconds become known with its commit; a run that was killed has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from statistics import median

from dbt.adapters.tablestore.config.changed_keys_config import Way
from dbt.adapters.tablestore.plan.run_estimates import Estimate, Sample, estimates

MARGIN_SECONDS = 0.02
TRIED = 0.8  # deviations by which a strategy counts as faster than its estimate
AGE = 30  # runs
KEYS_SHARE = 0.6  # of a model's rows: evaluating more keys reads and computes as much as all rows do
_KEPT = 3  # runs of one strategy and one power of ten
_ROWS_A_SECOND = 1_000_000  # of inputs, as long as no run has shown how fast this query is
_FIXED = {Way.DELTAS: 0.2, Way.KEYS: 0.4, Way.WHOLE: 0.3}  # seconds of a run without rows
# few keys take this share of the time of all rows: scans are not restricted, joins are
_OF_ALL = 0.6
_OF_SIZES = 1 / 3  # what sizes say beside a first build
_CODES = {Way.WHOLE: 1, Way.DELTAS: 2, Way.KEYS: 3}  # in the property
_WAYS = {code: way for way, code in _CODES.items()}


@dataclass(frozen=True)
class RowCounts:
    """Rows by metadata. `changed`, `total`: of the inputs. `joined`: of those that deltas read beside the changes, as
    often as they do so. `groups`: of the model. `evaluated`: of those in parts of the query that are evaluated to look
    for affected keys.
    """

    changed: int = 0
    total: int = 0
    joined: int = 0
    groups: int = 0
    evaluated: int = 0


@dataclass(frozen=True)
class PastRun:
    """`work`: rows of the inputs that changed; of a run that computed all rows, all rows of the inputs. `number`: 1 for
    the first run. `keys`: affected ones, of a run by affected keys.
    """

    way: Way
    work: int
    seconds: float
    number: int
    keys: int = 0

    @property
    def magnitude(self) -> int:
        """Digits of `work`."""
        return len(str(self.work))


@dataclass(frozen=True)
class ChosenWay:
    """`reason`: in six words. `seconds`: what each strategy would take; `keys`: affected ones, if runs say so."""

    way: Way
    reason: str = ""
    seconds: Mapping[Way, float] = field(default_factory=dict)
    keys: int | None = None


@dataclass(frozen=True)
class RunHistory:
    """Of one query of one model, oldest run first. `begun`: the run whose commit carries this, without its seconds."""

    runs: tuple[PastRun, ...] = ()
    begun: PastRun | None = None
    begun_ms: int = 0

    def choose(self, possible: Iterable[Way], sizes: RowCounts) -> ChosenWay:
        """One of the strategies that the query has, at least one. The first, if all rows are not among them: nothing is
        weighed then.
        """
        ways = [way for way in Way if way in set(possible)]
        found = self._estimates(ways, sizes)
        keys, most = self._keys(sizes.changed), most_keys(sizes.groups)
        if Way.WHOLE in ways and keys is not None and most is not None and keys > most:
            ways = [way for way in ways if way != Way.KEYS]
        best = ways[0]
        for way in ways[1:] if Way.WHOLE in ways else ():
            if _score(found[way]) + MARGIN_SECONDS < _score(found[best]):
                best = way
        seconds = {way: one.seconds for way, one in found.items()}
        return ChosenWay(best, self._reason(ways, sizes.changed), seconds, keys)

    def _estimates(self, ways: Sequence[Way], sizes: RowCounts) -> dict[Way, Estimate]:
        whole = [_grown(one, sizes) for one in self._near(Way.WHOLE, sizes.changed)]
        level = median(one.seconds for one in whole) if whole else _guess_whole(sizes)
        samples = [*whole, *(one for way in (Way.DELTAS, Way.KEYS) for one in self._near(way, sizes.changed))]
        found = estimates(
            {str(way): _guess(way, sizes, level) for way in Way},
            [Sample(str(one.way), one.number, one.seconds) for one in samples],
        )
        return {way: found[str(way)] for way in ways}

    def _reason(self, ways: Sequence[Way], changed: int) -> str:
        if len(ways) == 1 or Way.WHOLE not in ways:
            return "the only strategy that it has" if len(ways) == 1 else "as its config asks"
        known = [way for way in ways if self._near(way, changed)]
        if not known:
            return "cheapest by sizes"
        return "cheapest by earlier runs" + ("" if known == list(ways) else " and sizes")

    def _near(self, way: Way, changed: int) -> list[PastRun]:
        """Runs with about as many changed rows; of all rows all of them."""
        runs = [one for one in self.runs if one.way == way]
        if way == Way.WHOLE:
            return runs
        smaller = [one for one in runs if one.magnitude <= len(str(changed))]
        nearest = max((one.magnitude for one in smaller), default=0)
        return [one for one in smaller if one.magnitude == nearest]

    def _keys(self, changed: int) -> int | None:
        """As many of each changed row as in the runs before."""
        runs = self._near(Way.KEYS, changed)
        found = [round(one.keys * max(1.0, changed / max(one.work, 1))) for one in runs]
        return max(found, default=None)

    def ended(self, end_ms: int) -> RunHistory:
        """With the run whose commit was made at `end_ms` (epoch milliseconds) among the runs."""
        if self.begun is None:
            return self
        seconds = max(end_ms - self.begun_ms, 0) / 1000
        return RunHistory(_newest([*self.runs, replace(self.begun, seconds=seconds)]))

    def beginning(self, way: Way, work: int, now_ms: int, keys: int = 0) -> RunHistory:
        """For the commit of the next run."""
        number = 1 + max((one.number for one in self.runs), default=0)
        return RunHistory(self.runs, PastRun(way, work, 0.0, number, keys), now_ms)

    def text(self) -> str:
        """For a property of the commit."""
        made = [[_CODES[one.way], one.work, round(one.seconds, 3), one.number, one.keys] for one in self.runs]
        begun = self.begun
        now = None if begun is None else [_CODES[begun.way], begun.work, begun.number, begun.keys]
        return json.dumps([made, now, self.begun_ms], separators=(",", ":"))

    @classmethod
    def read(cls, text: str | None) -> RunHistory:
        """Of a property; none, and none that can be read, is no history."""
        try:
            runs, begun, begun_ms = json.loads(text or "[[],null,0]")
            made = (
                None if begun is None else PastRun(_WAYS[begun[0]], int(begun[1]), 0.0, *map(int, begun[2:4]))
            )
            found = (PastRun(_WAYS[one[0]], int(one[1]), float(one[2]), *map(int, one[3:5])) for one in runs)
            return cls(tuple(found), made, int(begun_ms))
        except (ValueError, TypeError, LookupError):
            return cls()


def _score(one: Estimate) -> float:
    """What is not known well may be less: so it is tried."""
    return one.seconds * exp(-TRIED * one.deviation)


def _grown(one: PastRun, sizes: RowCounts) -> PastRun:
    """A run over all rows, as of the rows now. The first build may have waited for Spark: sizes count beside it."""
    took = one.seconds * max(1.0, sizes.total / max(one.work, 1))
    guess = _guess_whole(sizes)
    if one.number == 1 and guess < took:
        took = took ** (1 - _OF_SIZES) * guess**_OF_SIZES
    return replace(one, seconds=took)


def _guess_whole(sizes: RowCounts) -> float:
    return _FIXED[Way.WHOLE] + sizes.total / _ROWS_A_SECOND


def _guess(way: Way, sizes: RowCounts, whole: float) -> float:
    """By sizes, and by the seconds that all rows take."""
    if way == Way.WHOLE:
        return whole
    rest = max(whole - _FIXED[Way.WHOLE], 0.0)
    if way == Way.KEYS:
        return _FIXED[way] + (_OF_ALL + sizes.evaluated / max(sizes.total, 1)) * rest
    return _FIXED[way] + min((sizes.changed + sizes.joined) / max(sizes.total, 1), 1.0) * rest


def most_keys(groups: int) -> int | None:
    """So many affected keys are evaluated at most; None: the model has no rows yet, so nothing says it."""
    return int(KEYS_SHARE * groups) if groups else None


def _newest(runs: Iterable[PastRun]) -> tuple[PastRun, ...]:
    ordered = sorted(runs, key=lambda one: one.number)
    last = ordered[-1].number
    kept: list[PastRun] = []
    for one in reversed(ordered):
        alike = [each for each in kept if (each.way, each.magnitude) == (one.way, one.magnitude)]
        if len(alike) < _KEPT and last - one.number < AGE:
            kept.append(one)
    return tuple(reversed(kept))
