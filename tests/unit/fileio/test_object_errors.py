"""What the client shows of a refused or lost request, as errors with a code and a fix."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from obstore.exceptions import AlreadyExistsError, GenericError

from tablestore_engine.errors import StorageError, StoreAnswerUnknown
from tablestore_engine.fileio.object_errors import (
    answer_unknown,
    explained_store,
    head_or_reason,
    while_open,
)

PATH = "s3://b/x"


def _raised(text: str) -> StorageError | StoreAnswerUnknown:
    with pytest.raises((StorageError, StoreAnswerUnknown)) as error, explained_store(PATH):
        raise GenericError(text)
    return error.value


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            "HTTP error: error sending request\n InvalidMessage(InvalidContentType)",
            "write `endpoint` with http://",
        ),
        (
            "HTTP error: error sending request\n InvalidCertificate(UnknownIssuer)",
            "a certificate that this machine",
        ),
        ("HTTP error: builder error\n kind: Builder, source: BadScheme", "into `endpoint`"),
        (
            "DeleteObjects request failed for key x: Access Denied. (code: AccessDenied)",
            "list, get, put and delete",
        ),
        (
            "non-2xx status code: 501: <Code>NotImplemented</Code><Message>A header</Message>",
            "conditional puts",
        ),
    ],
)
def test_refusals_that_did_nothing_have_a_fix(text: str, fix: str) -> None:
    """TS1264: nothing was sent, or the store says that it did not do it."""
    error = _raised(f"Generic S3 error: {text}")
    assert error.code == "TS1264"
    assert fix in error.fix


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('HTTP error: error sending request\n message: "Connection refused",', "Connection refused"),
        (
            'HTTP error: error sending request\n error: "failed to lookup address information",',
            "failed to lookup",
        ),
        (
            "non-2xx status code: 503: <Code>SlowDown</Code><Message>a &#34;b&#34;</Message>",
            'SlowDown: a "b"',
        ),
        ("non-2xx status code: 400 Bad Request: ", "400 Bad Request"),
    ],
)
def test_answers_that_say_nothing_have_a_code(text: str, why: str) -> None:
    """TS1266 with the cause in words that can be searched for."""
    error = _raised(f"Generic S3 error: {text}")
    assert (type(error), error.code) == (StoreAnswerUnknown, "TS1266")
    assert why in error.why


@pytest.mark.parametrize("later", [StorageError("TS1264", "", why="", fix=""), ValueError("x")])
def test_errors_after_a_lost_put_are_that_put(later: Exception) -> None:
    """A refusal, or a check that fails, says nothing about the put on its way; a taken name does."""
    lost = answer_unknown(PATH, "lost")
    with pytest.raises(StoreAnswerUnknown, match="lost"), while_open(lost):
        raise later
    with pytest.raises(type(later)), while_open(None):
        raise later
    with pytest.raises(AlreadyExistsError), while_open(lost):
        raise AlreadyExistsError("taken")


@pytest.mark.parametrize(
    ("status", "asked"), [("400 Bad Request", 1), ("403 Forbidden", 1), ("500 Internal", 0)]
)
def test_head_without_a_reason_is_asked_again(status: str, asked: int) -> None:
    """The answer to a HEAD request has no document: the reason comes with a GET; a lost one is no refusal."""
    gets: list[str] = []

    def fail() -> str:
        raise GenericError(f"Server returned non-2xx status code: {status}: ")

    get: Callable[[], object] = lambda: gets.append("")  # noqa: E731 - an object that can be read after all
    with pytest.raises(GenericError, match=status):
        head_or_reason(fail, get)
    assert len(gets) == asked
    assert head_or_reason(lambda: "fine", get) == "fine"
