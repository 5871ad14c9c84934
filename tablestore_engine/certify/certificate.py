"""Whether the readers that are installed show the rows that this engine shows: one result for each reader.

Steps      which readers are installed  our sums  each reader's schema, then its sums  the differences
INVARIANT  a reader that is named is installed, or nothing is read: TS1581, TS1582.
INVARIANT  all readers are asked for one snapshot by its number: commits meanwhile change no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from tablestore_engine.certify.reader_process import (
    ICEBERG_READERS,
    READERS,
    ReaderEnvironment,
    ReaderRefused,
    ReaderRows,
)
from tablestore_engine.certify.table_sums import TableSums, is_like, schema_differences
from tablestore_engine.errors import FixRequest

OK, DIFFERS, REFUSED, NOT_INSTALLED = "OK", "differs", "refused", "not installed"
_EMPTIED = "only NULL lists of structs, which are empty here: a known fault of pyiceberg 0.12"


@dataclass(frozen=True)
class CertifiedState:
    """What the readers are asked for. `location`: folder of the table; `iceberg`: of its Iceberg table, if any.

    `batches` reads the rows of the state by this engine. `store`: how readers reach an S3 store, None: a folder.
    """

    table: str
    snapshot_id: int
    location: str
    iceberg: str | None
    schema: pa.Schema
    batches: Callable[[], Iterable[pa.RecordBatch]]
    store: Mapping[str, object] | None = None


@dataclass(frozen=True)
class ReaderResult:
    """`status`: `OK`, `differs`, `refused` or `not installed`; `details`: what differs, or why it was refused."""

    reader: str
    version: str | None
    status: str
    rows: int | None = None
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Certificate:
    """What each reader said of one snapshot; `rows`: ours. `is_clean`: one is OK, none differs, and no named one was
    refused.
    """

    table: str
    snapshot_id: int
    rows: int
    readers: tuple[ReaderResult, ...]
    is_clean: bool


def certify(
    state: CertifiedState, named: Sequence[str] | None, environment: ReaderEnvironment
) -> Certificate:
    """`named`: readers, None: all that are installed. Raises FixRequest TS1581 to TS1583, and what a scan raises."""
    unknown = [one for one in named or () if one not in READERS] if named is None or named else [""]
    if unknown:
        raise FixRequest(
            "TS1581",
            f"there is no reader {unknown[0]!r}",
            why=f"the readers are {', '.join(READERS)}",
            fix="name some of them, or none for all that are installed",
        )
    versions = environment.versions()
    missing = [one for one in named or () if versions[one] is None]
    if missing or not any(versions.values()):
        raise FixRequest(
            "TS1582",
            f"the reader {missing[0]} is not installed" if missing else "no reader is installed",
            why="the Python environment has no package "
            + (missing[0] if missing else f"of {', '.join(READERS)}"),
            fix=f"pip install {missing[0] if missing else READERS[0]}, or name another environment with --python",
        )
    ours = TableSums(state.schema)
    for batch in state.batches():
        ours.add(batch)
    asked = READERS if named is None else [one for one in READERS if one in named]
    results = tuple(_result(state, ours, one, versions[one], environment) for one in asked)
    bad = (DIFFERS,) if named is None else (DIFFERS, REFUSED)
    is_clean = any(one.status == OK for one in results) and not any(one.status in bad for one in results)
    return Certificate(state.table, state.snapshot_id, ours.rows, results, is_clean)


def _result(
    state: CertifiedState, ours: TableSums, reader: str, version: str | None, environment: ReaderEnvironment
) -> ReaderResult:
    if version is None:
        return ReaderResult(reader, None, NOT_INSTALLED)
    location = state.iceberg if reader in ICEBERG_READERS else state.location
    if location is None:
        why = "it reads Iceberg metadata, and the table has none: set metadata.iceberg.storage"
        return ReaderResult(reader, version, REFUSED, details=(why,))
    if "://" in location and state.store is None:
        why = "it is asked for tables in folders and in S3-compatible stores only"
        return ReaderResult(reader, version, REFUSED, details=(why,))
    with closing(environment.start(reader, location, state.snapshot_id, state.store)) as rows:
        try:
            return _compared(ours, rows, reader, version)
        except ReaderRefused as refused:
            return ReaderResult(reader, version, REFUSED, details=(str(refused),))


def _compared(ours: TableSums, rows: ReaderRows, reader: str, version: str) -> ReaderResult:
    schema = rows.schema()
    if not schema.names:  # a reader without rows may know no columns
        schema = ours.wanted
    found = schema_differences(ours.wanted, schema)
    alike = [
        one
        for one in ours.wanted
        if one.name in schema.names and is_like(one.type, schema.field(one.name).type)
    ]
    theirs = TableSums(pa.schema(alike))
    try:
        for batch in rows.batches():
            theirs.add(batch)
    except pa.ArrowInvalid as error:  # a value that our column cannot have
        return ReaderResult(reader, version, DIFFERS, theirs.rows, (*found, f"a value of {error}"))
    found += ours.differences(theirs)
    if not found:
        return ReaderResult(reader, version, OK, theirs.rows)
    if theirs.emptied and reader == "pyiceberg" and ours.is_emptied_by(theirs):
        found += (_EMPTIED,)
    return ReaderResult(reader, version, DIFFERS, theirs.rows, found)
