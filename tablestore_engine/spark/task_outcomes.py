"""What a Spark task gives back: the change of a bucket, or an error of ours, as bytes on the wire.

Names      encode_change() encode_failure()   in the worker
           decode_outcome() decode_outcomes()   in the driver: the change, or the error that it was
           list_files()   paths of what was made for changes
INVARIANT  errors of ours never fail a Spark job: its message would bury them in a stack trace. They cross as data, with
           their code and text.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass

from tablestore_engine import errors
from tablestore_engine.errors import EngineBug, TablestoreError
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.bucket_state import BucketChange


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


def decode_outcome(data: bytes) -> BucketChange | TablestoreError:
    """One outcome. Raises EngineBug TS1516."""
    outcome = pickle.loads(data)  # noqa: S301 - written by our own tasks of this very job
    if isinstance(outcome, _Failure):
        kind: type[TablestoreError] = getattr(errors, outcome.kind)
        return kind(outcome.code, outcome.what, why=outcome.why, fix=outcome.fix)
    if isinstance(outcome, BucketChange):
        return outcome
    raise EngineBug(
        "TS1516",
        "a Spark task returned something unknown",
        why=f"expected a BucketChange, got {type(outcome).__name__}",
        fix="report this",
    )


def decode_outcomes(encoded: Iterable[bytes]) -> tuple[tuple[BucketChange, ...], TablestoreError | None]:
    """The changes of all tasks, and the first failure as the error that it was: then nothing may be committed."""
    changes: list[BucketChange] = []
    failure: TablestoreError | None = None
    for outcome in map(decode_outcome, encoded):
        if isinstance(outcome, BucketChange):
            changes.append(outcome)
        else:
            failure = failure or outcome
    return tuple(changes), failure


def list_files(layout: TableLayout, schema: TableSchema, changes: Iterable[BucketChange]) -> list[str]:
    """Paths of what was made for these changes."""
    spec = PartitionSpec.of(schema)
    return [
        layout.data_file(spec.path_of_bytes(change.partition_bytes), change.bucket, meta.file_name)
        for change in changes
        for meta in change.created
    ]
