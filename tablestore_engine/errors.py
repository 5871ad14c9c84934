"""Every exception of the engine, grouped by what the caller must do about it.

CHANGE     which errors a caller can catch
INVARIANT  a message has three parts: what failed and where, why (expected and got), what to do next; each is shown as
           one line without control characters, whatever name or value it repeats.
INVARIANT  a code (`TS` and four digits) means one thing for ever; `docs/errors.md` is generated from the raises.
           Its first two digits are its Area.
INVARIANT  no code decides by the text or the code of an error (tests/house/test_error_decisions.py): a caller that must
           tell one error from others catches a subclass, which stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum

from tablestore_engine.display import visible


class Area(IntEnum):
    """What an error is about: the first two digits of its code."""

    OPTIONS = 10
    FORMAT = 11
    FILES = 12
    STORE = 13
    CATALOG = 14
    SPARK = 15
    ROWS = 16
    LOG = 17
    ADAPTER = 18
    COMMAND = 19
    MODEL = 20  # the adapter too: 18 is full
    STATEMENT = 21  # SQL statements: 15 is full


class TablestoreError(Exception):
    """Base of all: `code` TS####, `what` failed and where, `why`, and the next step in `fix`.

    >>> try:
    ...     engine.table("demo.missing")
    ... except TablestoreError as error:
    ...     print(error.code, "-", error.fix)
    TS1414 - correct the name, or build the model first
    """

    def __init__(self, code: str, what: str, *, why: str, fix: str, **facts: object) -> None:
        super().__init__(code, what, why, fix)
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix
        self.facts = facts

    def __reduce__(self) -> tuple[Callable[..., TablestoreError], tuple[object, ...]]:
        return _again, (type(self), self.code, self.what, self.why, self.fix, self.facts)

    @property
    def area(self) -> Area:
        """What it is about."""
        return Area(int(self.code[2:4]))

    def __str__(self) -> str:
        return f"{self.code} {visible(self.what)}\n  why: {visible(self.why)}\n  next: {visible(self.fix)}"


class RetryError(TablestoreError):
    """Nothing is broken; the same call may succeed when repeated.

    >>> for attempt in range(3):
    ...     try:
    ...         inserted = orders.upsert([{"id": 4, "region": "us", "amount": 1.0}]).inserted
    ...         break
    ...     except RetryError:
    ...         continue
    >>> inserted
    1
    """


class BrokersUnreachable(RetryError):
    """TS1702: no Kafka broker answered."""


class KafkaRequestFailed(RetryError):
    """TS1711: the brokers refused a request for a reason that may pass."""


class StagedSnapshotOvertaken(RetryError):
    """TS1075, TS1076, TS1308: other rows were published first; plan and test the staged snapshot again."""


class StagedSnapshotClosed(RetryError):
    """TS1388: it is being published and takes no further write."""


class LogNotReady(RetryError):
    """TS1082: a staged snapshot was not published, since the table's log cannot take it."""


class DataFileGone(RetryError):
    """TS1562: a data file was deleted while a query read it."""


class Stopped(RetryError):
    """The program was told to end: what ran was cancelled, nothing of it was committed."""


class FixRequest(TablestoreError, ValueError):
    """The caller asked for something wrong: change the call, option, SQL or configuration.

    >>> try:
    ...     orders.scan(filter="amount > 'high'")
    ... except FixRequest as error:
    ...     print(error.code)
    TS1565
    """


class NotFound(FixRequest, KeyError):
    """A database, table, snapshot, tag or file that was named does not exist.

    >>> try:
    ...     orders.scan(snapshot=99)
    ... except NotFound as error:
    ...     print(error.code)
    TS1302
    """

    __str__ = TablestoreError.__str__


class FileMissing(NotFound):
    """TS1201: a file of the warehouse does not exist."""


class StagedSnapshotMissing(NotFound):
    """TS1316: a table has no staged snapshot of that name to write, test or publish."""


class StagedVersionMissing(NotFound):
    """TS1317: a query names a staged snapshot as version, and there is none."""


class CommitExpired(FixRequest):
    """TS1394: the commit was made before, and its snapshot has expired since."""


class TagTaken(FixRequest):
    """TS1319: a tag of that name is there, of another snapshot."""


class FixData(TablestoreError, ValueError):
    """The rows break a rule of their table; the table is as it was.

    >>> try:
    ...     orders.upsert([{"id": None, "region": "eu", "amount": 1.0}])
    ... except FixData as error:
    ...     print(error.code)
    TS1602
    """


class RepeatedKeys(FixData):
    """TS1601: rows of one write have the same key, and nothing orders them."""


class FileTooLarge(FixData):
    """TS1293: a metadata file was not read; the fact `marks` is the store's of its content."""


class Unsupported(TablestoreError):
    """A feature of the format, of SQL or of Kafka that is refused by name, never guessed.

    >>> try:
    ...     engine.create_table("demo.sums", schema, primary_key="id", options={"row-tracking.enabled": "true"})
    ... except Unsupported as error:
    ...     print(error.code)
    TS1127
    """


class StorageError(TablestoreError, OSError):
    """The disk refused, for a reason that is known: it is full, closed to us, or a name is too long."""

    __str__ = TablestoreError.__str__


class ForeignKeyListed(StorageError):
    """TS1292: a folder of an object store has an object whose key is no path, so that it cannot be listed as usual."""


class OutcomeUnknown(TablestoreError):
    """An answer was lost: the step may have happened. Read back; delete nothing meanwhile (P4).

    >>> try:
    ...     report = orders.delete("id = 3")
    ... except OutcomeUnknown:
    ...     print("look at the table first:", orders.latest_snapshot_id())
    >>> orders.scan().to_arrow().num_rows
    2
    """


class StoreAnswerUnknown(OutcomeUnknown, OSError):
    """TS1266: an object store gave no clear answer, also when it was asked again."""

    __str__ = TablestoreError.__str__


class PublishPending(TablestoreError):
    """The rows are committed and only the log lacks them: publish again, never write again.

    `facts`: `snapshot` the committed snapshot id, `report` the WriteReport of the commit.

    >>> try:
    ...     report = orders.upsert([{"id": 4, "region": "us", "amount": 1.0}])
    ... except PublishPending:
    ...     report = orders.publish()  # later, when the brokers answer
    >>> report.inserted
    1
    """


class Fenced(TablestoreError):
    """Another process replaced this one; its handle must be thrown away.

    >>> try:
    ...     report = orders.publish()
    ... except Fenced:
    ...     engine.close()  # another process publishes this table now
    """


class EngineBug(TablestoreError):
    """An invariant of the engine is broken; please report it with the facts."""


def _again(
    kind: type[TablestoreError], code: str, what: str, why: str, fix: str, facts: Mapping[str, object]
) -> TablestoreError:
    """The same error in another process: pickle itself would give `why` and `fix` by place."""
    return kind(code, what, why=why, fix=fix, **facts)
