"""Changes between snapshots of the main line as rows, from their changelogs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tablestore_engine.errors import FixRequest
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.stream.change_source import check_change_columns, result_schema
from tablestore_engine.stream.open_stream import ReadMode, StreamRequest, open_stream
from tablestore_engine.stream.startup_mode import StartupMode, StartupRequest


def read_changes_table(store: TableStore, since: int, until: int | None) -> pa.Table:
    """All rows of read_change_batches. Raises what that raises."""
    batches = read_change_batches(store, since, until)
    context = [pa.Table.from_batches([batch]) for batch in batches]
    return pa.concat_tables(context) if context else result_schema(store.schema).empty_table()


def read_change_batches(
    store: TableStore, since: int, until: int | None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Changes of the snapshots in (since, until] in order, a step at a time, as a reader gets them that ends there.

    Raises FixRequest TS1016, TS1362, NotFound TS1302 (until), TS1333 (since), TS1337 (while they are read).
    """
    last = until if until is not None else store.snapshots.find_latest_id() or since
    check_forward(since, last)
    check_change_columns(store.schema, columns)
    if last == since:
        return iter(())
    store.snapshots.get(last)
    start = StartupRequest(StartupMode.FROM_SNAPSHOT, snapshot_id=since + 1)
    request = StreamRequest(start=start, until=last, columns=columns, read_mode=ReadMode.FILE)
    return open_stream(store.context, request)


def check_forward(since: int, until: int) -> None:
    """Raises FixRequest TS1016."""
    if until < since:
        raise FixRequest(
            "TS1016",
            "changes are read forward",
            why=f"from snapshot {since} to {until}",
            fix="swap the two snapshots",
        )
