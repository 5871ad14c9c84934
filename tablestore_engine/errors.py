"""Every exception of the engine, grouped by what the caller must do about it.

Names      TablestoreError   the one base; `code` is stable, append-only
           RetryError        a race was lost or a part was busy: the same call may succeed now
           Stopped           another thread stopped the work (Ctrl-C, SIGTERM)
           FixRequest        the call, option, SQL or configuration is wrong (also a ValueError)
           NotFound          a named thing does not exist (also a KeyError)
           FixData           the rows are wrong: nothing was written
           Unsupported       a feature we do not read or write; the message names it
           StorageError      the disk refused for a known reason (also an OSError)
           OutcomeUnknown    the answer was lost: read back before anything else, delete nothing
           PublishPending    the rows are committed, their log is behind: publish, never write them again
           Fenced            a newer process took over: throw this handle away
           EngineBug         an invariant of ours does not hold: report it
INVARIANT  a message has three parts: what failed and where, why (expected and got), what to do next; each is shown as
           one line without control characters, whatever name or value it repeats.
INVARIANT  a code (`TS` and four digits) means one thing for ever; `docs/errors.md` is generated from the raises.
Ranges     TS10 options  TS11 format  TS12 files  TS13 store and commit  TS14 catalog  TS15 Spark and SQL
           TS16 rows  TS17 log and Kafka  TS18 dbt adapter  TS19 command line, Java, broker
"""

from __future__ import annotations

from tablestore_engine.display import visible


class TablestoreError(Exception):
    """Base of all: `code` TS####, `what` failed and where, `why`, and the next step in `fix`."""

    def __init__(self, code: str, what: str, *, why: str, fix: str, **facts: object) -> None:
        super().__init__(code, what, why, fix)
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix
        self.facts = facts

    def __str__(self) -> str:
        return f"{self.code} {visible(self.what)}\n  why: {visible(self.why)}\n  next: {visible(self.fix)}"


class RetryError(TablestoreError):
    """Nothing is broken; the same call may succeed when repeated."""


class BrokersUnreachable(RetryError):
    """TS1702: no Kafka broker answered."""


class KafkaRequestFailed(RetryError):
    """TS1711: the brokers refused a request for a reason that may pass."""


class Stopped(RetryError):
    """The program was told to end: what ran was cancelled, nothing of it was committed."""


class FixRequest(TablestoreError, ValueError):
    """The caller asked for something wrong: change the call, option, SQL or configuration."""


class NotFound(FixRequest, KeyError):
    """A database, table, snapshot, tag or file that was named does not exist."""

    __str__ = TablestoreError.__str__


class FixData(TablestoreError, ValueError):
    """The rows break a rule of their table; the table is as it was."""


class Unsupported(TablestoreError):
    """A feature of the format, of SQL or of Kafka that is refused by name, never guessed."""


class StorageError(TablestoreError, OSError):
    """The disk refused, for a reason that is known: it is full, closed to us, or a name is too long."""

    __str__ = TablestoreError.__str__


class OutcomeUnknown(TablestoreError):
    """An answer was lost: the step may have happened. Read back; delete nothing meanwhile (P4)."""


class PublishPending(TablestoreError):
    """The rows are committed and only the log lacks them: publish again, never write again.

    `facts`: `snapshot` the committed snapshot id, `report` the WriteReport of the commit.
    """


class Fenced(TablestoreError):
    """Another process replaced this one; its handle must be thrown away."""


class EngineBug(TablestoreError):
    """An invariant of the engine is broken; please report it with the facts."""
