"""What an object store refuses, as errors that name the object and the next step.

INVARIANT  StorageError: the store surely did nothing. StoreAnswerUnknown: it may have done it, or may do it later; that
           is an OSError too, and the caller of a claim reads back (P4).
INVARIANT  the texts of the client are shortened and hold no credentials: only error codes and messages of the store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotModifiedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)

from tablestore_engine.errors import StorageError, StoreAnswerUnknown
from tablestore_engine.fileio.storage_errors import missing_file

_CODE = re.compile(r"<Code>([A-Za-z0-9]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,300})</Message>")
_NO_BUCKET, _MOVED = "NoSuchBucket", "PermanentRedirect"
_FIXES = {
    _NO_BUCKET: "create the bucket, or correct its name in `warehouse`",
    "ExpiredToken": "renew the session's credentials, then run the same command again; nothing is lost",
    "RequestTimeTooSkewed": "correct this machine's clock",
    "InvalidAccessKeyId": "correct AWS_ACCESS_KEY_ID in the environment",
    "SignatureDoesNotMatch": "correct AWS_SECRET_ACCESS_KEY in the environment, and `region` of the address",
    _MOVED: "set `region` of the address to the bucket's region",
    "AuthorizationHeaderMalformed": "set `region` of the address to the bucket's region",
    "AccessDenied": "grant this identity list, get, put and delete on the bucket and prefix (docs/object-stores.md)",
}


@dataclass(frozen=True)
class StoreAnswer:
    """What the client repeats of an answer: the store's error code as `reason`, `message`."""

    reason: str
    message: str
    says_redirect: bool
    names_metadata: bool

    @property
    def why(self) -> str:
        """One line for users."""
        return (
            f"{self.reason}: {self.message}" if self.reason and self.message else self.reason or self.message
        )


def read_answer(error: BaseException) -> StoreAnswer:
    """obstore gives the store's answer as text alone; everything that is decided by it is read here."""
    text = str(error)
    code, message = _CODE.search(text), _MESSAGE.search(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = (lines[0] if lines else type(error).__name__)[:300]
    return StoreAnswer(
        reason=code[1] if code is not None else "",
        message=message[1] if message is not None else first,
        says_redirect="redirect" in text.lower(),
        names_metadata="169.254.169.254" in text,
    )


@contextmanager
def explained_store(path: str) -> Iterator[None]:
    """Raises NotFound TS1201, StorageError TS1264, StoreAnswerUnknown; lets AlreadyExistsError and PreconditionError
    pass.
    """
    try:
        yield
    except (AlreadyExistsError, PreconditionError, NotModifiedError):
        raise
    except FileNotFoundError as error:
        if read_answer(error).reason == _NO_BUCKET:
            raise _refused(path, read_answer(error)) from error
        raise missing_file(path) from error
    except (
        PermissionDeniedError,
        UnauthenticatedError,
        InvalidPathError,
        UnknownConfigurationKeyError,
    ) as error:
        raise _refused(path, read_answer(error)) from error
    except BaseError as error:
        answer = read_answer(error)
        if answer.reason in _FIXES or answer.says_redirect or answer.names_metadata:
            raise _refused(path, answer) from error
        raise answer_unknown(path, answer.why) from error


def answer_unknown(path: str, why: str) -> StoreAnswerUnknown:
    """TS1266."""
    return StoreAnswerUnknown(
        "TS1266",
        f"the object store gave no clear answer for {path}",
        why=why,
        fix="check the network, and `endpoint` if it is set; then run the same command again: it finds what was done",
    )


def is_range_refused(error: BaseException) -> bool:
    """Whether the object ends before the range that was asked for: an empty one has no range at all."""
    return read_answer(error).reason == "InvalidRange"


def _refused(path: str, answer: StoreAnswer) -> StorageError:
    code = answer.reason or (_MOVED if answer.says_redirect else "")
    fix = _FIXES.get(code, _FIXES["AccessDenied"])
    if answer.names_metadata:
        fix = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or the cloud's own variables), or `anonymous=true`"
    return StorageError("TS1264", f"the object store refused {path}", why=answer.why, fix=fix)
