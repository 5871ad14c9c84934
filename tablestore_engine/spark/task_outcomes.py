"""What a Spark task gives back: the change of a bucket, or an error of ours, as bytes on the wire.

INVARIANT  errors of ours never fail a Spark job: its message would bury them in a stack trace. They cross as data, with
           their code and text.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tablestore_engine import errors
from tablestore_engine.errors import EngineBug, TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.tasks.prepublish_rows import TaskReceiver

BUCKET_COLUMN = "__ts_bucket"  # of the rows that a task gets
Outcome = tuple[int, bytes]  # place in the answer, and what was encoded


@dataclass(frozen=True)
class _Failure:
    """A TablestoreError as plain texts (its class takes keywords, which pickle cannot give)."""

    kind: str
    code: str
    what: str
    why: str
    fix: str


def encode_change(change: BucketChange) -> bytes:
    """The change as an outcome."""
    return pickle.dumps(change)


def encode_failure(error: TablestoreError) -> bytes:
    """The error as an outcome."""
    return pickle.dumps(_Failure(type(error).__name__, error.code, error.what, error.why, error.fix))


@dataclass(frozen=True)
class Gathered:
    """What was made, by place, and the first failure: then nothing of it may be committed."""

    changes: Mapping[int, BucketChange]
    failure: TablestoreError | None

    def in_order(self, count: int) -> list[BucketChange]:
        """All of `count` changes. Raises the failure, EngineBug TS1563 when one is missing."""
        if self.failure is not None:
            raise self.failure
        if sorted(self.changes) != list(range(count)):
            raise EngineBug(
                "TS1563",
                "a Spark job did not answer for all of its tasks",
                why=f"{count} were sent, {len(self.changes)} came back",
                fix="nothing was committed; run it again, and report this",
            )
        return [self.changes[place] for place in range(count)]


def gather(outcomes: Iterable[Outcome]) -> Gathered:
    """Outcomes in whatever order they came. Raises EngineBug TS1516."""
    changes: dict[int, BucketChange] = {}
    failure: TablestoreError | None = None
    for place, data in sorted(outcomes):
        outcome = _decode(data)
        if isinstance(outcome, BucketChange):
            changes[place] = outcome
        else:
            failure = failure or outcome
    return Gathered(changes, failure)


def discard(
    fileio: FileIO, layout: TableLayout, schema: TableSchema, changes: Iterable[BucketChange]
) -> None:
    """Delete what was made for these changes: nobody will name it, and a full disk would stay full."""
    spec = PartitionSpec.of(schema)
    for change in changes:
        place = spec.path_of_bytes(change.partition_bytes)
        for meta in change.created:
            fileio.delete(layout.data_file(place, change.bucket, meta.file_name))


def dump_receiver(early: TaskReceiver | None) -> bytes | None:
    """In the driver."""
    return None if early is None else pickle.dumps(early)


def load_receiver(data: bytes | None) -> TaskReceiver | None:
    """In the worker. None where what it needs is not installed: then the rows are received behind the commit."""
    if data is None:
        return None
    try:
        receiver: TaskReceiver = pickle.loads(data)  # noqa: S301 - written by our own driver
    except ImportError:
        return None
    return receiver


def decode_outcome(data: bytes) -> object:
    """In the driver: what a task gave back; a failure as the error that it was."""
    outcome = pickle.loads(data)  # noqa: S301 - written by our own tasks of this very job
    if not isinstance(outcome, _Failure):
        return outcome
    kind: type[TablestoreError] = getattr(errors, outcome.kind)
    return kind(outcome.code, outcome.what, why=outcome.why, fix=outcome.fix)


def _decode(data: bytes) -> BucketChange | TablestoreError:
    outcome = decode_outcome(data)
    if isinstance(outcome, BucketChange | TablestoreError):
        return outcome
    raise EngineBug(
        "TS1516",
        "a Spark task returned something unknown",
        why=f"expected a BucketChange, got {type(outcome).__name__}",
        fix="report this",
    )
