"""When the publisher tries again, and after which pause: without a broker."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from tablestore_engine.errors import FixRequest, RetryError, TablestoreError
from tablestore_engine.log.kafka.publisher import FENCES_MAX, TROUBLES_MAX, PublisherRetry

AWAY = RetryError("TS1799", "the brokers are away", why="-", fix="-")
WRONG = FixRequest("TS1798", "the log-in is refused", why="-", fix="-")
FENCED = KafkaException(KafkaError(KafkaError._FENCED))


def _pauses(error: Exception, final: TablestoreError, jitter: float) -> list[float]:
    retry, pauses = PublisherRetry(), []
    while (pause := retry.next_pause(error, final, is_in_time=True, jitter=jitter)) is not None:
        pauses.append(pause)
    return pauses


def test_errors_are_retried_with_a_pause_that_doubles() -> None:
    """Three times; jitter is from half to one and a half of the pause."""
    assert _pauses(AWAY, AWAY, 0.5) == pytest.approx([0.2, 0.4, 0.8])
    assert len(_pauses(AWAY, AWAY, 0.0)) == TROUBLES_MAX
    assert _pauses(AWAY, AWAY, 0.0)[0] == pytest.approx(0.1)
    assert _pauses(AWAY, AWAY, 1.0)[0] == pytest.approx(0.3)


def test_takeovers_are_counted_on_their_own() -> None:
    """Another publisher that took over is retried even where the error itself is final."""
    assert len(_pauses(FENCED, WRONG, 0.5)) == FENCES_MAX


def test_final_errors_and_late_ones_end_the_call() -> None:
    """A wrong setting is not retried, nor anything once the time of the call is over."""
    assert _pauses(WRONG, WRONG, 0.5) == []
    assert PublisherRetry().next_pause(AWAY, AWAY, is_in_time=False, jitter=0.5) is None
