"""What the page shows of a table: parts that are read together; an error in one does not affect the others.

CHANGE     the facts of a table on the page
INVARIANT  nothing here asks a broker, starts a JVM, or reads rows. What may take long is a part of its own, which
           the page asks for apart: the topic, the streams, a difference, the first rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tablestore_engine.api import Engine, Table, stream_lags
from tablestore_engine.errors import NotFound, TablestoreError
from tablestore_engine.runtime.moments import moment_text
from tablestore_engine.spi import DAMAGED, STATE_POSITION, is_credential, short_name
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.ui.commit_records import Record
from tablestore_engine.ui.lag_records import lag_record, status_record
from tablestore_engine.ui.page_section import PagePart, read_part
from tablestore_engine.ui.snapshot_pages import read_horizon, read_snapshot_page
from tablestore_engine.ui.staged_records import staged_record, waits_each
from tablestore_engine.warehouse.streaming_state_files import StreamingStateFiles

BUCKETS_MAX = 60


@dataclass
class FileSums:
    """`deleted`: rows in the files that are no part of the table any more."""

    files: int = 0
    bytes: int = 0
    rows: int = 0
    deleted: int = 0

    def add(self, file: StoredFile) -> None:
        self.files += 1
        self.bytes += file.meta.file_size
        self.rows += file.meta.row_count
        self.deleted += file.meta.row_count - file.visible_rows

    def as_record(self) -> dict[str, int]:
        """Names as in `tablestore files --json`."""
        return {"files": self.files, "bytes": self.bytes, "rows": self.rows, "deleted": self.deleted}


def read_bucket_sizes(table: Table) -> dict[str, object]:
    """Sums by level; and by bucket and level of the largest BUCKETS_MAX buckets."""
    return sum_files(table.scan().plan().files)


def sum_files(files: Iterable[StoredFile]) -> dict[str, object]:
    """Of these files. Largest buckets first; `more` counts the buckets that are left out."""
    levels: dict[int, FileSums] = {}
    buckets: dict[tuple[str, int], dict[int, FileSums]] = {}
    for file in files:
        level = file.meta.level
        levels.setdefault(level, FileSums()).add(file)
        place = (file.partition_path.strip("/"), file.bucket)
        buckets.setdefault(place, {}).setdefault(level, FileSums()).add(file)
    largest = sorted(buckets.items(), key=lambda one: (-sum(sums.bytes for sums in one[1].values()), one[0]))
    return {
        "levels": _level_records(levels),
        "buckets": [
            {"partition": partition, "bucket": bucket, "levels": _level_records(found)}
            for (partition, bucket), found in largest[:BUCKETS_MAX]
        ],
        "more": max(len(largest) - BUCKETS_MAX, 0),
    }


def _level_records(levels: dict[int, FileSums]) -> list[dict[str, int]]:
    return [{"level": level, **levels[level].as_record()} for level in sorted(levels)]


def read_table(engine: Engine, name: str, now_ms: int) -> Record:
    """All parts of a table or view that metadata alone gives. Raises NotFound TS1414, FixRequest TS1401, TS1402."""
    found = None
    try:
        found = engine.relation(name)
    except DAMAGED:
        if not _is_listed(engine, name):
            raise
    if found is not None and found.kind == "view":
        view = engine.find_view(name)
        sql = {"sql": None if view is None else view.sql, "comment": found.comment}
        return {"name": name, "kind": "view", "now_ms": now_ms, "view": PagePart(sql).as_record()}
    reads: Mapping[str, Callable[[], object]] = {
        "facts": lambda: _facts(engine.table(name)),
        "snapshots": lambda: read_snapshot_page(engine.table(name)),
        "horizon": lambda: read_horizon(engine.table(name)),
        "sizes": lambda: read_bucket_sizes(engine.table(name)),
        "staged": lambda: read_staged(engine, name),
        "consumers": lambda: _consumers(engine.table(name)),
        "columns": lambda: _columns(engine, name),
    }
    parts = {key: read_part(read).as_record() for key, read in reads.items()}
    return {"name": name, "kind": "table", "now_ms": now_ms, **parts}


def _is_listed(engine: Engine, name: str) -> bool:
    """Whether it is there, so that its parts say what is wrong with it."""
    database, _, table = name.partition(".")
    return ("table", table) in engine.relation_names(database)


def _facts(table: Table) -> Record:
    facts, schema = table.facts(), table.schema
    options = {
        key: "(hidden)" if is_credential(key) else value for key, value in sorted(schema.options.items())
    }
    return {
        "comment": schema.comment,
        "snapshot": facts.snapshot_id,
        "committed_at": _moment(facts.committed_at_ms),
        "rows": facts.rows,
        "waiting_rows": facts.waiting_rows,
        "files": facts.files,
        "bytes": facts.bytes,
        "primary_key": list(facts.primary_key),
        "partition_by": list(facts.partition_by),
        "buckets": facts.buckets,
        "topic": facts.log,
        "location": table.store.location,
        "options": options,
    }


def _columns(engine: Engine, name: str) -> list[Record]:
    return [
        {"name": one.name, "type": one.type_text, "nullable": one.nullable, "comment": one.comment}
        for one in engine.columns(name)
    ]


def read_staged(engine: Engine, name: str) -> list[Record]:
    """Staged snapshots with what their tests said, and rows that failed; the counts of their own changes."""
    items = engine.gate.read_book(name).staged
    records = []
    for item, wait in zip(items, waits_each(engine, items), strict=True):
        record = staged_record(engine, item, wait)
        properties = record.pop("properties")
        assert isinstance(properties, dict)
        counts = {key: _count(properties, key) for key in ("inserted", "updated", "deleted")}
        red = [short_name(test) for test in item.red_gates]
        records.append(
            {**record, **counts, "red": red, "short": _short_names(record), "beside": item.is_beside}
        )
    return records


def _short_names(record: Record) -> dict[str, str]:
    outcomes = record["tests"]
    assert isinstance(outcomes, list)
    return {one["test"]: short_name(one["test"]) for one in outcomes}


def _count(properties: Mapping[str, str], key: str) -> int:
    text = str(properties.get(f"tablestore.{key}", "0"))
    return int(text) if text.isdecimal() else 0


def _consumers(table: Table) -> list[Record]:
    return [
        {
            "consumer": one.name,
            "next_snapshot": one.next_snapshot,
            "lag_snapshots": one.lag_snapshots,
            "lag_rows": one.lag_rows,
            "last_change": _moment(one.moved_ms),
            "trouble": one.trouble,
        }
        for one in table.consumers()
    ]


def read_summary(engine: Engine, name: str) -> Record:
    """One line of the list of tables: rows, size, newest commit, what is staged and held back."""
    table = engine.table(name)
    facts = table.facts()
    staged = engine.gate.read_book(name).staged
    return {
        "rows": facts.rows,
        "bytes": facts.bytes,
        "snapshot": facts.snapshot_id,
        "committed_at": _moment(facts.committed_at_ms),
        "staged": len(staged),
        "red": sum(1 for one in staged if one.red_gates),
    }


def read_streams(engine: Engine, name: str | None, now_ms: int) -> list[Record]:
    """What a table follows, or what all of them do, with lag and the size of the state. Raises NotFound TS1414."""
    if name is not None and not _follows(engine, name):
        return []
    found = stream_lags(engine, None if name is None else [name])
    sizes = {table: _state_bytes(engine, table) for table in {one.table for one in found}}
    return [{**lag_record(one, now_ms), "state_bytes": sizes[one.table]} for one in found]


def _follows(engine: Engine, name: str) -> bool:
    """Whether its newest snapshot has positions of sources; if they cannot be read, the lag says why."""
    try:
        return bool(engine.table(name).positions())
    except NotFound:
        raise
    except TablestoreError:
        return True


def _state_bytes(engine: Engine, name: str) -> int | None:
    """Of the newest snapshot; None of a table without state."""
    try:
        table = engine.table(name)
        state = table.positions().get(STATE_POSITION)
        return (
            None
            if state is None
            else StreamingStateFiles(table.warehouse.catalog, table.identifier).size_of(state)
        )
    except TablestoreError:
        return None


def read_topic(engine: Engine, name: str) -> Record | None:
    """Where its log stands; None without one. Asks the brokers. Raises TS17xx."""
    status = engine.table(name).log_status()
    return None if status is None else status_record(status)


def _moment(millis: int | None) -> str | None:
    return None if millis is None else moment_text(millis)
