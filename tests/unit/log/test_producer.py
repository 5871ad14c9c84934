"""Errors of the producer that come as something else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from tablestore_engine.log.kafka.kafka_client import FENCED, Reasons, code_of
from tablestore_engine.log.kafka.kafka_producer import serve


def _fail(_: float) -> None:
    raise SystemError("flush returned NULL without setting an exception")


def _refuse(*, fatal: bool, code: int = KafkaError._FENCED) -> Callable[[], None]:
    def ask() -> None:
        raise KafkaException(KafkaError(code, fatal=fatal))

    return ask


def _open() -> None:
    """A client that is not broken opens another transaction."""


def test_a_fatal_error_that_lost_its_exception_is_what_the_client_said() -> None:
    """The publisher goes on by the code: fenced means that another one took over, never a crash."""
    reasons = Reasons()
    reasons(KafkaError(KafkaError._FENCED))
    with pytest.raises(KafkaException) as caught:
        serve(_fail, 1.0, reasons, _open)
    assert code_of(caught.value) in FENCED


def test_a_fatal_error_without_any_word_is_still_one_of_kafka() -> None:
    """It is tried again like any other trouble."""
    with pytest.raises(KafkaException, match="did not say why"):
        serve(_fail, 1.0, Reasons(), _refuse(fatal=False, code=KafkaError._STATE))


def test_a_fatal_error_that_nobody_told_is_what_the_client_refuses_the_next_call_with() -> None:
    """Whoever claims a topic at the same moment is fenced, and the client may say so to neither callback."""
    with pytest.raises(KafkaException) as caught:
        serve(_fail, 1.0, Reasons(), _refuse(fatal=True))
    assert code_of(caught.value) in FENCED
