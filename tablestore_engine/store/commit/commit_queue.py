"""The order of writers that are in each other's way, on stores where a lost claim costs many round trips.

    expire/turn-<ms>-<expected ms>-<uuid>   empty: a commit that was overtaken, and how long its last try took

WHY        the winner of a claim begins its next commit at once, with all caches filled. A loser must read what the
           winner wrote and plan again, and so loses again, for minutes.
Rule       a commit that was overtaken LOSSES times puts its turn, and tries again when no older one is there. A commit
           that meets another one's turn, in the look that precedes its claim anyway, does not claim: it puts a
           later turn and waits.
INVARIANT  a turn is advice. The claim alone decides who commits, and a writer without turns is as right as one with.
INVARIANT  nobody waits for the dead: of a turn that stays the oldest for longer than its commit can take it is deleted.
PAIMON     other engines see no turns, and win as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.base import FileIO, FileStatus
from tablestore_engine.format.layout import TURN_PREFIX, TableLayout
from tablestore_engine.runtime.outside_world import Runtime

LOSSES = 2
_TURN = re.compile(re.escape(TURN_PREFIX) + r"\d{1,18}-(\d{1,9})-[0-9a-f-]+")
_PATIENCE_MS, _PATIENCE_TRIES, _PATIENCE_MAX_MS = 2_000, 4, 600_000
_POLL_S, _POLL_MAX_S, _POLLS_MAX = 0.04, 0.5, 2_000


def turns_ahead(found: Sequence[FileStatus], own: str | None, ignored: frozenset[str]) -> tuple[str, ...]:
    """Names of turns before `own`, the oldest first; all of them where it is not there. By the store's time, which is
    one for all writers, and within a second by that of the writers.
    """
    turns = sorted(
        (one for one in found if _TURN.fullmatch(one.name)), key=lambda one: (one.modified_ms, one.name)
    )
    names = [one.name for one in turns if one.name not in ignored]
    return tuple(names[: names.index(own)] if own in names else names)


def patience_ms(turn: str) -> int:
    """How long a commit of this turn may take, once it is the oldest."""
    found = _TURN.fullmatch(turn)
    expected = 0 if found is None else int(found[1])
    return min(_PATIENCE_MS + _PATIENCE_TRIES * expected, _PATIENCE_MAX_MS)


@dataclass
class CommitQueue:
    """One commit's place in the order. `must_wait`: the look of the last try found an older turn."""

    fileio: FileIO
    layout: TableLayout
    runtime: Runtime
    own: str | None = None
    must_wait: bool = False
    _is_asked: bool = False
    _ignored: frozenset[str] = frozenset()
    _first_seen: dict[str, int] = field(default_factory=dict)

    @property
    def is_used(self) -> bool:
        """On a disk a try is so short that losers come through."""
        return self.fileio.folders is None

    def begin_try(self) -> None:
        """The next look decides whether to wait; no later one of this try, since its claim may have landed by then."""
        self.must_wait, self._is_asked = False, True

    def see(self, found: Sequence[FileStatus]) -> None:
        """What lies in `expire/` right before the claim."""
        if self._is_asked and self.is_used:
            self._is_asked, self.must_wait = False, bool(turns_ahead(found, self.own, self._ignored))

    def wait(self, tried_ms: int) -> None:
        """Put a turn and come back when it is the oldest. `tried_ms`: how long the last try took."""
        if not self.is_used:
            return
        if self.own is None:
            now, uuid = self.runtime.now_ms(), self.runtime.new_uuid()
            self.own = f"{TURN_PREFIX}{now}-{min(tried_ms, 999_999_999)}-{uuid}"
            self._quietly(lambda: self.fileio.write(self._path(str(self.own)), b""))
        for _ in range(_POLLS_MAX):
            try:
                found = self.fileio.list(self.layout.sweeps_dir)
            except (OSError, TablestoreError):
                return  # the try itself says what is wrong with the store
            ahead = turns_ahead(found, self.own, self._ignored)
            if not ahead:
                return
            self._give_up_on(ahead[0])
            self.runtime.sleep(min(self.runtime.random.uniform(0.5, 1.0) * _POLL_S * len(ahead), _POLL_MAX_S))

    def _give_up_on(self, first: str) -> None:
        now = self.runtime.now_ms()
        since = self._first_seen.setdefault(first, now)
        if now - since > patience_ms(first):
            self._ignored |= {first}
            self._quietly(lambda: self.fileio.delete(self._path(first)))

    def leave(self) -> None:
        """The commit has ended, in whatever way."""
        if self.own is not None:
            self._quietly(lambda: self.fileio.delete(self._path(str(self.own))))
            self.own = None

    def _path(self, turn: str) -> str:
        return f"{self.layout.sweeps_dir}/{turn}"

    def _quietly(self, step: Callable[[], None]) -> None:
        with suppress(OSError, TablestoreError):
            step()
