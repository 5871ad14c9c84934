"""Errors of an object store as errors that name the object and the next step.

INVARIANT  StorageError: the store surely did nothing. StoreAnswerUnknown: it may have done it, or may do it later; that
           is an OSError, and the caller of a claim reads back (P4).
INVARIANT  after a put without an answer no refusal says that nothing was done (`while_open`): the put may still land.
INVARIANT  the texts of the client are shortened and hold no credentials: only error codes and messages of the store.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

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

from tablestore_engine.errors import ForeignKeyListed, StorageError, StoreAnswerUnknown
from tablestore_engine.fileio.storage_errors import missing_file

T = TypeVar("T")
# an answer's document; one object of a bulk delete, as the client shows it
_CODE = re.compile(r"<Code>([A-Za-z0-9]+)</Code>|\(code: ([A-Za-z0-9]+)\)")
_MESSAGE = re.compile(r"<Message>([^<]{1,300})</Message>")
_CAUSE = re.compile(r'\b(?:message|error): "([^"\\]{1,200})"')
_STATUS = re.compile(r"\b(?:status|Status|HTTP status)[^0-9]{0,25}([1-5][0-9]{2})\b")
_NO_BUCKET, _MOVED = "NoSuchBucket", "PermanentRedirect"
# what the client shows of a connection that was not made, so that surely nothing was sent
_UNCONNECTED = {
    "InvalidContentType": "NoTls",
    "InvalidCertificate": "UntrustedCertificate",
    "BadScheme": "PlainHttp",
}
TAKEN_BY_NOTHING = (
    "the store reports a conflict, and there is no object; a versioned bucket of some S3-compatible stores refuses "
    "the name of a deleted object"
)
_RENEW = "renew the session's credentials, then run the same command again; nothing is lost"
_REGION = "set `region` of the address to the bucket's region"
_FIXES = {
    _NO_BUCKET: "create the bucket, or correct its name in `warehouse`",
    "ExpiredToken": _RENEW,
    "InvalidToken": _RENEW,
    "TokenRefreshRequired": _RENEW,
    "RequestTimeTooSkewed": "correct this machine's clock, then run the same command again",
    "InvalidAccessKeyId": "correct AWS_ACCESS_KEY_ID in the environment",
    "SignatureDoesNotMatch": "correct AWS_SECRET_ACCESS_KEY in the environment, and `region` of the address",
    _MOVED: _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "AccessDenied": "grant this identity list, get, put and delete on the bucket and prefix (docs/object-stores.md)",
    "InvalidObjectState": "restore the object from the archive, and remove the rule that archives objects there",
    "NotImplemented": "use an object store that has conditional puts and bulk deletes (docs/object-stores.md)",
    "NoTls": "write `endpoint` with http://, or turn on TLS at the server: it answered without TLS",
    "UntrustedCertificate": "use a certificate that this machine trusts; `endpoint` needs the host name that it is for",
    "PlainHttp": "write the http:// address into `endpoint` of the warehouse, or use https://",
}


def answer_unknown(path: str, why: str) -> StoreAnswerUnknown:
    """TS1266."""
    return StoreAnswerUnknown(
        "TS1266",
        f"the object store gave no clear answer for {path}",
        why=why,
        fix="check `endpoint` (host, port, http or https) and the network, then run the same command again: "
        "it finds what was done",
    )


@dataclass(frozen=True)
class StoreAnswer:
    """What the client repeats of an answer: the store's error code as `reason`, `message`, the HTTP `status`."""

    reason: str
    message: str
    status: str
    says_redirect: bool
    names_metadata: bool

    @property
    def is_unexplained(self) -> bool:
        """A refusal without an error code: the answer to a HEAD request has no document."""
        return not self.reason and self.status in ("400", "401", "403")

    @property
    def why(self) -> str:
        """One line for users."""
        return (
            f"{self.reason}: {self.message}" if self.reason and self.message else self.reason or self.message
        )


def read_answer(error: BaseException) -> StoreAnswer:
    """obstore gives the store's answer as text alone; everything that is decided by it is read here."""
    text = str(error)
    code, message, status = _CODE.search(text), _MESSAGE.search(text), _STATUS.search(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = (lines[0] if lines else type(error).__name__)[:300]
    cause = _CAUSE.search(text)  # of the connection: refused, an unknown host
    if cause is not None and cause[1] not in first:
        first = f"{first} ({cause[1]})"
    unconnected = (kind for sign, kind in _UNCONNECTED.items() if sign in text)
    return StoreAnswer(
        reason=(code[1] or code[2]) if code is not None else next(unconnected, ""),
        message=html.unescape(message[1]) if message is not None else first,
        status=status[1] if status is not None else "",
        says_redirect="redirect" in text.lower(),
        names_metadata="169.254.169.254" in text,
    )


@contextmanager
def explained_store(path: str) -> Iterator[None]:
    """Raises NotFound TS1201, StorageError TS1264, TS1292, StoreAnswerUnknown; lets AlreadyExistsError and
    PreconditionError pass.
    """
    try:
        yield
    except (AlreadyExistsError, PreconditionError, NotModifiedError):
        raise
    except FileNotFoundError as error:
        if read_answer(error).reason == _NO_BUCKET:
            raise _refused(path, read_answer(error)) from error
        raise missing_file(path) from error
    except InvalidPathError as error:
        raise ForeignKeyListed(
            "TS1292",
            f"objects below {path} cannot be listed",
            why=f"the key of one of them is no path: {read_answer(error).message}",
            fix="delete that object, or give it another key, with a tool of the store",
        ) from error
    except (PermissionDeniedError, UnauthenticatedError, UnknownConfigurationKeyError) as error:
        raise _refused(path, read_answer(error)) from error
    except BaseError as error:
        answer = read_answer(error)
        if answer.reason in _FIXES or answer.says_redirect or answer.names_metadata:
            raise _refused(path, answer) from error
        raise answer_unknown(path, answer.why) from error


@contextmanager
def while_open(earlier: StoreAnswerUnknown | None) -> Iterator[None]:
    """After a put without an answer, any error of the block is that put's: it may still land, and nobody may delete
    what it names. Lets AlreadyExistsError and PreconditionError pass.
    """
    try:
        yield
    except (AlreadyExistsError, PreconditionError):
        raise
    except Exception as later:
        if earlier is None:
            raise
        raise earlier from later


def head_or_reason(head: Callable[[], T], get: Callable[[], object]) -> T:
    """What `head` gives. A refusal of a HEAD request has no reason: `get` of the same object raises it with one."""
    try:
        return head()
    except BaseError as error:
        if read_answer(error).is_unexplained:
            get()
        raise


def is_range_refused(error: BaseException) -> bool:
    """Whether the object ends before the range that was asked for: an empty one has no range at all."""
    return read_answer(error).reason == "InvalidRange"


def _refused(path: str, answer: StoreAnswer) -> StorageError:
    code = answer.reason or (_MOVED if answer.says_redirect else "")
    fix = _FIXES.get(code, _FIXES["AccessDenied"])
    if answer.names_metadata:
        fix = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or the cloud's own variables), or `anonymous=true`"
    return StorageError("TS1264", f"the object store refused {path}", why=answer.why, fix=fix)
