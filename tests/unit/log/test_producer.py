"""Errors of the producer that come as something else."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from tablestore_engine.log.client import FENCED, Reasons, code_of
from tablestore_engine.log.producer import serve


def _fail(_: float) -> None:
    raise SystemError("flush returned NULL without setting an exception")


def test_a_fatal_error_that_lost_its_exception_is_what_the_client_said() -> None:
    """The publisher goes on by the code: fenced means that another one took over, never a crash."""
    reasons = Reasons()
    reasons(KafkaError(KafkaError._FENCED))
    with pytest.raises(KafkaException) as caught:
        serve(_fail, 1.0, reasons)
    assert code_of(caught.value) in FENCED


def test_a_fatal_error_without_any_word_is_still_one_of_kafka() -> None:
    """It is tried again like any other trouble."""
    with pytest.raises(KafkaException, match="did not say why"):
        serve(_fail, 1.0, Reasons())
