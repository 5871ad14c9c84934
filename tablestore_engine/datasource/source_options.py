"""What the options of format("tablestore") say. Pure: texts in, values or a refusal out.

CHANGE     the options of Spark's format("tablestore")
Spelling   keys have no case (Spark's own rule); Paimon's keys are Paimon's, the others Spark's way
INVARIANT  a key that the use at hand does not know is refused by name (TS1440): none is taken in silence.
INVARIANT  no option is a secret: Spark shows all of them in plans and messages. What a log needs comes from the
           environment of the workers (log/kafka, TABLESTORE_KAFKA_CONFIG).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.datasource.admission import NO_LIMITS, Limits
from tablestore_engine.datasource.kind_policy import ALL_KINDS, KindPolicy, RowKinds
from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.store_address import is_object_store
from tablestore_engine.fileio.stores import local_folder
from tablestore_engine.format.layout import MAIN_BRANCH, check_branch_name
from tablestore_engine.runtime.moments import epoch_millis
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.stream.startup_mode import StartupRequest, parse_request

CHANGELOG = "read.changelog"
_WAREHOUSE, _TABLE, _PATH = "warehouse", "table", "path"
_BRANCH = "branch"
_ADDRESS = (_WAREHOUSE, _TABLE, _PATH, _BRANCH)
_MODE, _SNAPSHOT, _TIMESTAMP = "scan.mode", "scan.snapshot-id", "scan.timestamp-millis"
_OLD_STARTS = ("log.scan", "log.scan.timestamp-millis")
_VERSION, _TIME = "startingVersion", "startingTimestamp"
_STARTS = (_MODE, _SNAPSHOT, _TIMESTAMP, *_OLD_STARTS, _VERSION, _TIME)
_SNAPSHOTS, _ROWS, _BYTES = "maxSnapshotsPerTrigger", "maxRowsPerTrigger", "maxBytesPerTrigger"
_PAIMON_LIMITS = {_ROWS: "read.stream.maxRowsPerTrigger", _BYTES: "read.stream.maxBytesPerTrigger"}
_CONSUMER, _IGNORE = "consumer-id", "consumer.ignore-progress"
_KINDS, _SKIP_DELETES = "rowKinds", "skipDeletes"
_TAG, _BETWEEN, _FILTERS = "scan.tag-name", "incremental-between", "pushFilters"
_WATERMARK = "scan.watermark"
_SCHEMA_CHANGE, _MISSING, _DUPLICATES, _OVERWRITE = (
    "onSchemaChange",
    "missingColumns",
    "duplicates",
    "overwrite",
)
_OF_SPARK = ("checkpointLocation", "queryName")
_STREAM_ONLY = (*_STARTS, _SNAPSHOTS, _ROWS, _BYTES, *_PAIMON_LIMITS.values(), _CONSUMER, _IGNORE)
_STREAM_ONLY = (*_STREAM_ONLY, _KINDS, _SKIP_DELETES)
_READ_ONLY = (_SNAPSHOT, _TIMESTAMP, _TAG, _WATERMARK, _BETWEEN, _FILTERS)
_WRITE_ONLY = (_SCHEMA_CHANGE, _MISSING, _DUPLICATES, _OVERWRITE, *_OF_SPARK)


@dataclass(frozen=True)
class TableAddress:
    """`warehouse` is an absolute folder: workers run in folders of their own. `branch` None: main."""

    warehouse: str
    identifier: Identifier
    branch: str | None = None


@dataclass(frozen=True)
class StreamOptions:
    """`start` None: as the table's `scan.mode` says."""

    start: StartupRequest | None = None
    limits: Limits = NO_LIMITS
    consumer_id: str | None = None
    ignores_progress: bool | None = None
    kinds: KindPolicy = ALL_KINDS


@dataclass(frozen=True)
class ReadOptions:
    """`version` None: the newest state; `between`: the changes of the snapshots in (first, last] instead."""

    version: TableVersion | None = None
    between: tuple[int, int] | None = None
    pushes_filters: bool = False


@dataclass(frozen=True)
class WriteOptions:
    """As WriteSpec has them; `partitions_only`: an overwrite replaces the partitions that its rows lie in."""

    on_schema_change: str = "same_columns"
    missing_columns: str = "refuse"
    duplicates: str | None = None
    partitions_only: bool = False


class _Said:
    """Options without case."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {str(key).lower(): str(value) for key, value in options.items()}

    def text(self, key: str) -> str | None:
        return self._values.get(key.lower())

    def number(self, key: str, *, least: int = 1) -> int | None:
        text = self.text(key)
        if text is None:
            return None
        if not text.strip().isascii() or not text.strip().isdigit() or len(text) > 18 or int(text) < least:
            raise _bad_value(key, text, f"a number from {least}")
        return int(text)

    def flag(self, key: str) -> bool | None:
        text = self.text(key)
        if text is None:
            return None
        if text.strip().lower() not in ("true", "false"):
            raise _bad_value(key, text, "true or false")
        return text.strip().lower() == "true"

    def check(self, use: str, known: tuple[str, ...]) -> None:
        """Raises FixRequest TS1440."""
        for key in self._values:
            names = {name.lower(): name for name in known}
            if key not in names:
                near = difflib.get_close_matches(key, names, n=1)
                raise FixRequest(
                    "TS1440",
                    f"{use} of tablestore has no option {key!r}",
                    why=f"it knows {', '.join(sorted(known))}",
                    fix=f"did you mean {names[near[0]]}?" if near else "leave it out",
                )


def parse_address(options: Mapping[str, str]) -> TableAddress:
    """Of `warehouse` and `table`, or of `path`, the table's folder; and of `branch`, as Paimon calls that option.

    Raises FixRequest TS1441, TS1060, TS1107, TS14xx.
    """
    said = _Said(options)
    branch = said.text(_BRANCH)
    if branch == MAIN_BRANCH:
        branch = None
    if branch is not None:
        check_branch_name(branch)
    warehouse, table, path = said.text(_WAREHOUSE), said.text(_TABLE), said.text(_PATH)
    if path is not None and warehouse is None and table is None:
        folder, table_name, database, query = _cut(_absolute(_PATH, path))
        if not database.endswith(".db"):
            raise _no_table(f"path {path!r} is no table's folder", "a table is in <warehouse>/<database>.db/")
        return TableAddress(folder + query, Identifier(database.removesuffix(".db"), table_name), branch)
    if path is not None or warehouse is None or table is None:
        given = ", ".join(key for key in _ADDRESS[:3] if said.text(key) is not None) or "none of them"
        raise _no_table("it is not said which table is meant", f"given: {given}")
    return TableAddress(_absolute(_WAREHOUSE, warehouse), Identifier.parse(table), branch)


def _cut(path: str) -> tuple[str, str, str, str]:
    """Warehouse, table, database and the settings of an object store, `?` included, of a table's path."""
    place, question, settings = path.partition("?") if is_object_store(path) else (path, "", "")
    above, _, table = place.rstrip("/").rpartition("/")
    warehouse, _, database = above.rpartition("/")
    return warehouse, table, database, question + settings


def _absolute(key: str, address: str) -> str:
    if is_object_store(address):
        return address
    folder = local_folder(address)
    if not folder.startswith("/"):
        raise _no_table(
            f"{key} {address!r} is relative", "Spark's workers would look for it in folders of their own"
        )
    return folder


def _no_table(what: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1441",
        what,
        why=why,
        fix="give warehouse (an absolute path) and table (database.table), or the path of the table's folder",
    )


def parse_stream(options: Mapping[str, str], *, shows_kinds: bool) -> StreamOptions:
    """`shows_kinds`: whether the rows say their kind. Raises FixRequest TS1440, TS1442, TS1331, TS1003."""
    said = _Said(options)
    said.check("a stream", (*_ADDRESS, CHANGELOG, *_STREAM_ONLY))
    is_skipping = said.flag(_SKIP_DELETES) or False
    kinds = said.text(_KINDS)
    if kinds is not None and kinds.strip().lower() not in list(RowKinds):
        raise _bad_value(_KINDS, kinds, ", ".join(RowKinds))
    chosen = RowKinds(kinds.strip().lower()) if kinds else RowKinds.ALL if shows_kinds else RowKinds.APPENDS
    if chosen is RowKinds.ALL and not shows_kinds:
        raise _bad_value(
            _KINDS, chosen, f"upserts or appends, since the rows have no column _row_kind ({CHANGELOG})"
        )
    return StreamOptions(
        _start(said),
        Limits(
            said.number(_SNAPSHOTS),
            said.number(_ROWS) or said.number(_PAIMON_LIMITS[_ROWS]),
            said.number(_BYTES) or said.number(_PAIMON_LIMITS[_BYTES]),
        ),
        said.text(_CONSUMER),
        said.flag(_IGNORE),
        KindPolicy(chosen, is_skipping),
    )


def _start(said: _Said) -> StartupRequest | None:
    """Spark's words become Paimon's."""
    options = {key: text for key in (_MODE, _SNAPSHOT, _TIMESTAMP, *_OLD_STARTS) if (text := said.text(key))}
    version, time = said.text(_VERSION), said.text(_TIME)
    if (version is not None or time is not None) and (options or (version and time)):
        raise _bad_value(
            _VERSION if version else _TIME, version or time or "", "one way to say where to begin"
        )
    if version is not None and version.strip().lower() == "latest":
        options = {_MODE: "latest"}
    elif version is not None:
        options = {_SNAPSHOT: str(said.number(_VERSION))}
    elif time is not None:
        options = {_TIMESTAMP: str(_milliseconds(time))}
    return parse_request(options=options) if options else None


def _milliseconds(text: str) -> int:
    try:
        return epoch_millis(datetime.fromisoformat(text.strip()))
    except ValueError:
        raise _bad_value(_TIME, text, "a time like 2026-01-31 or 2026-01-31T10:00:00Z") from None


def shows_changes(options: Mapping[str, str]) -> bool:
    """Whether the columns of a read include those of a changelog, when nobody says which columns. Raises TS1442."""
    said = _Said(options)
    asked = said.flag(CHANGELOG)
    return said.text(_BETWEEN) is not None if asked is None else asked


def parse_read(options: Mapping[str, str]) -> ReadOptions:
    """Raises FixRequest TS1440, TS1442."""
    said = _Said(options)
    said.check("a batch read", (*_ADDRESS, CHANGELOG, *_READ_ONLY))
    snapshot, tag, moment = said.number(_SNAPSHOT), said.text(_TAG), said.number(_TIMESTAMP, least=0)
    between = said.text(_BETWEEN)
    watermark = said.number(_WATERMARK, least=0)
    chosen = [
        key for key in (_SNAPSHOT, _TAG, _TIMESTAMP, _WATERMARK, _BETWEEN) if said.text(key) is not None
    ]
    if len(chosen) > 1:
        raise _bad_value(chosen[1], said.text(chosen[1]) or "", f"{chosen[0]} or {chosen[1]}, not both")
    version = None
    if chosen and between is None:
        version = TableVersion(snapshot=snapshot, tag=tag, timestamp_ms=moment, watermark=watermark)
    return ReadOptions(version, None if between is None else _range(between), said.flag(_FILTERS) or False)


def _range(text: str) -> tuple[int, int]:
    first, comma, last = (part.strip() for part in text.partition(","))
    if not comma or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in (first, last)):
        raise _bad_value(_BETWEEN, text, "two snapshots, as in 5,10 for the changes of 6 to 10")
    if int(first) > int(last):
        raise _bad_value(_BETWEEN, text, "the earlier snapshot first")
    return int(first), int(last)


def parse_write(options: Mapping[str, str]) -> WriteOptions:
    """Words are checked by WriteSpec. Raises FixRequest TS1440, TS1442."""
    said = _Said(options)
    said.check("a write", (*_ADDRESS, *_WRITE_ONLY))
    overwrite = (said.text(_OVERWRITE) or "table").strip().lower()
    if overwrite not in ("table", "partitions"):
        raise _bad_value(_OVERWRITE, overwrite, "table or partitions")
    defaults = WriteOptions()
    return WriteOptions(
        said.text(_SCHEMA_CHANGE) or defaults.on_schema_change,
        said.text(_MISSING) or defaults.missing_columns,
        said.text(_DUPLICATES),
        overwrite == "partitions",
    )


def _bad_value(key: str, value: str, expected: str) -> FixRequest:
    return FixRequest(
        "TS1442",
        f"option {key} of tablestore cannot be {value!r}",
        why=f"expected {expected}",
        fix="correct the option",
    )
