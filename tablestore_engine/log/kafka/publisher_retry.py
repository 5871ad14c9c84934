"""When the publisher tries again after an error, and after which pause. Pure.

CHANGE     how often, and after which pause, a publication is retried
Rule       an error that another try may heal, or another publisher that took over; within the time of the call; at most
           TROUBLES_MAX errors and FENCES_MAX takeovers
Pause      exponential backoff with jitter: 0.1 s times 2 for each failed try, times a factor of 0.5 to 1.5
"""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaException

from tablestore_engine.errors import RetryError, TablestoreError
from tablestore_engine.log.kafka.kafka_client import FENCED, code_of

TROUBLES_MAX = 3
FENCES_MAX = 5
_PAUSE_SECONDS = 0.1


@dataclass
class PublisherRetry:
    """Of one call. `troubles`: tries that failed by an error; `fences`: by another publisher that took over."""

    troubles: int = 0
    fences: int = 0

    def next_pause(
        self, error: Exception, final: TablestoreError, *, is_in_time: bool, jitter: float
    ) -> float | None:
        """Counts the error. Seconds before the next try, None where there is none and `final` is the answer.

        `jitter`: from 0 to 1.
        """
        is_fenced = isinstance(error, KafkaException) and code_of(error) in FENCED
        self.fences += is_fenced
        self.troubles += not is_fenced
        is_worth_it = isinstance(final, RetryError) or is_fenced
        if not (is_worth_it and is_in_time and self.troubles <= TROUBLES_MAX and self.fences <= FENCES_MAX):
            return None
        return _PAUSE_SECONDS * 2.0 ** (self.troubles + self.fences) * (0.5 + jitter)
