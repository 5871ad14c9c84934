"""A request to an object store without a clear answer is retried, with growing pauses.

CHANGE     how often a request to an object store is retried, and when a warning is logged
INVARIANT  only answers that say nothing are repeated: a refusal, "missing" and "exists" are answers.
INVARIANT  attempts and pauses are bounded; after the fifth attempt a warning with the reason is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from obstore.exceptions import AlreadyExistsError, PreconditionError

from tablestore_engine.errors import StoreAnswerUnknown
from tablestore_engine.fileio.object_errors import answer_unknown, explained_store, read_answer
from tablestore_engine.runtime.outside_world import Runtime

T = TypeVar("T")
ATTEMPTS = 8
_LOGGER = logging.getLogger("tablestore_engine.fileio")
_PAUSE_S, _PAUSE_MAX_S = 0.1, 10.0
_WARN_AFTER = 5  # attempts: about one second


@dataclass(frozen=True)
class Retries:
    """Clock and chance of the pauses come from `runtime`."""

    runtime: Runtime

    def repeat(self, path: str, work: Callable[[], T]) -> T:
        """`work` until it has a clear answer; REQUIRES that doing it twice is the same as once.

        Raises as explained_store, StoreAnswerUnknown after the last attempt.
        """
        problem = answer_unknown(path, "it was not asked")
        for turn in range(1, ATTEMPTS + 1):
            try:
                with explained_store(path):
                    return work()
            except StoreAnswerUnknown as failure:
                problem = failure
            except (AlreadyExistsError, PreconditionError) as conflict:  # without a condition: two at once
                problem = answer_unknown(path, read_answer(conflict).why)
            if turn < ATTEMPTS:
                self.pause(turn, problem)
        raise problem

    def pause(self, turn: int, problem: StoreAnswerUnknown | None) -> None:
        """Before the next try after `turn` of them; `problem` None: a conflict, for which no warning is logged."""
        if turn == _WARN_AFTER and problem is not None:
            _LOGGER.warning(
                "%s (%s); asking again, up to %d times", problem.what, problem.why, ATTEMPTS - turn
            )
        bound = min(_PAUSE_S * 2 ** (turn - 1), _PAUSE_MAX_S)
        self.runtime.sleep(self.runtime.random.uniform(0.2, 1.0) * bound)
