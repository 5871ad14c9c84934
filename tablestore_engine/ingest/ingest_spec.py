"""What a caller asks for: whose messages, into which table, by which rules. And what was done.

INVARIANT  a spec is checked completely before anything is read or written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.ingest.plain_values import DECIMALS
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange

_Word = TypeVar("_Word", bound=StrEnum)
_CHANGES = (OnSchemaChange.APPEND_NEW_COLUMNS, OnSchemaChange.IGNORE, OnSchemaChange.FAIL)


class ChangeFormat(StrEnum):
    """The program that wrote the messages, and their encoding.

    >>> ChangeFormat("debezium-json") is ChangeFormat.DEBEZIUM_JSON
    True
    """

    DEBEZIUM_JSON = "debezium-json"
    DEBEZIUM_AVRO = "debezium-avro"
    CANAL_JSON = "canal-json"
    MAXWELL_JSON = "maxwell-json"
    OGG_JSON = "ogg-json"


class OnError(StrEnum):
    """What happens to a message that cannot be read.

    >>> spec = IngestSpec(ChangeFormat.CANAL_JSON, into="demo.people", topic="people", on_error=OnError.DEAD_LETTER)
    >>> spec.on_error.value
    'dead_letter'
    """

    FAIL = "fail"
    DEAD_LETTER = "dead_letter"


class OnTruncate(StrEnum):
    """What happens when the source empties its table.

    >>> spec = IngestSpec(ChangeFormat.CANAL_JSON, into="demo.people", topic="people", on_truncate=OnTruncate.APPLY)
    >>> spec.on_truncate.value
    'apply'
    """

    FAIL = "fail"
    IGNORE = "ignore"
    APPLY = "apply"


@dataclass(frozen=True)
class IngestSpec:
    """Enum values may be given as strings. Raises FixRequest TS1418, TS1419, TS1101.

    into              the table, `db.table`; made when it is not there
    topic, path       exactly one: a Kafka topic; a file of JSON lines, or a folder of them
    key               columns of the primary key; else what the messages or the table say
    columns           name → type, as in SQL; what messages carry no types for, or other types than they say
    infer             types of columns without a schema are inferred from their values
    decimals          what a text of a DECIMAL is where messages carry no types: 'base64' or 'text'
    source_table      which of the source's tables are meant: `schema.table`, with * and ?
    on_schema_change  'append_new_columns': new columns are added, types widened; 'ignore'; 'fail'
    on_error          'fail', or 'dead_letter': into the table <into>__dead_letters
    on_truncate       'fail', 'ignore', or 'apply': the table is emptied too
    partition_by, options   of a table that is made
    rows_max, bytes_max     of one commit
    interval_s        while following: how long messages are collected for one commit

    >>> lines = Path(engine.warehouse, "changes.jsonl")
    >>> size = lines.write_text('{"before":null,"after":{"id":1,"name":"ann"},"op":"c"}')
    >>> spec = IngestSpec(ChangeFormat.DEBEZIUM_JSON, into="demo.people", path=str(lines), key=("id",), infer=True)
    >>> engine.ingest(spec).upserts
    1
    """

    format: ChangeFormat
    into: str
    topic: str | None = None
    path: str | None = None
    key: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    infer: bool = False
    decimals: str | None = None
    source_table: str | None = None
    on_schema_change: OnSchemaChange = OnSchemaChange.APPEND_NEW_COLUMNS
    on_error: OnError = OnError.FAIL
    on_truncate: OnTruncate = OnTruncate.FAIL
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    rows_max: int = 200_000
    bytes_max: int = 128 << 20
    interval_s: float = 1.0

    def __post_init__(self) -> None:
        for name, words in _WORDS.items():
            object.__setattr__(self, name, _word(words, name, getattr(self, name)))
        for name in ("key", "partition_by"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        if self.on_schema_change not in _CHANGES:
            raise _unknown("on_schema_change", self.on_schema_change, _CHANGES)
        if self.decimals not in (None, *DECIMALS):
            raise _unknown("decimals", self.decimals, DECIMALS)
        for name in ("rows_max", "bytes_max"):
            if getattr(self, name) < 1:
                raise _unknown(name, getattr(self, name), ("a number from 1 on",))
        if not self.interval_s >= 0:
            raise _unknown("interval_s", self.interval_s, ("a number from 0 on",))
        self._check_source()
        _ = self.types

    def _check_source(self) -> None:
        if (self.topic is None) == (self.path is None):
            raise FixRequest(
                "TS1419",
                f"it is not clear where the changes for {self.into} come from",
                why=f"expected a topic or a path, got topic {self.topic!r} and path {self.path!r}",
                fix="give one of the two",
            )
        if self.path is not None and self.format is ChangeFormat.DEBEZIUM_AVRO:
            raise FixRequest(
                "TS1419",
                f"changes in {self.format} cannot come from files",
                why="a line of a file is a text; messages in Avro are bytes that name a schema of a registry",
                fix="read the topic, or files of JSON lines",
            )

    @property
    def types(self) -> Mapping[str, DataType]:
        """Types of `columns`. Raises FixRequest TS1101."""
        return {name: parse_type(text) for name, text in self.columns.items()}

    @property
    def dead_letters(self) -> str:
        """The table of messages that cannot be read."""
        return f"{self.into}__dead_letters"


_WORDS: Mapping[str, Any] = {
    "format": ChangeFormat,
    "on_error": OnError,
    "on_truncate": OnTruncate,
    "on_schema_change": OnSchemaChange,
}


def _word(words: type[_Word], name: str, value: str) -> _Word:
    try:
        return words(value)
    except ValueError:
        allowed = _CHANGES if name == "on_schema_change" else list(words)
        raise _unknown(name, value, allowed) from None


def _unknown(name: str, value: object, expected: Any) -> FixRequest:  # noqa: ANN401 - words
    return FixRequest(
        "TS1418",
        f"ingesting cannot have {name} {value!r}",
        why=f"expected one of {', '.join(map(str, expected))}",
        fix=f"set {name} to one of these",
    )


@dataclass
class IngestReport:
    """`messages`: all that were read; each is in `upserts` or `deletes` (a change of a key in both), `ignored`, `dead`
    or among `truncates`. Ignored are also tombstones after the delete of their key. `commits`: snapshots of the table;
    `snapshot_id`: the newest of them, None without one. `position`: after all that is committed.
    `is_complete`: False where a run up to now was stopped before it was there.

    >>> lines = Path(engine.warehouse, "changes.jsonl")
    >>> size = lines.write_text('{"before":null,"after":{"id":1,"name":"ann"},"op":"c"}')
    >>> spec = IngestSpec(ChangeFormat.DEBEZIUM_JSON, into="demo.people", path=str(lines), key=("id",), infer=True)
    >>> report = engine.ingest(spec)
    >>> report.messages, report.is_complete
    (1, True)
    """

    into: str
    source: str
    messages: int = 0
    upserts: int = 0
    deletes: int = 0
    truncates: int = 0
    dead: int = 0
    commits: int = 0
    restarts: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    snapshot_id: int | None = None
    position: str | None = None
    is_complete: bool = True

    def summary(self) -> str:
        """`120 messages: 100 upserts, 15 deletes, 5 heartbeats · 2 commits, snapshot 7`."""
        parts = [f"{self.upserts} upserts", f"{self.deletes} deletes"]
        parts += [f"{self.truncates} truncates"] if self.truncates else []
        parts += [f"{count} {name}" for name, count in sorted(self.ignored.items()) if count]
        parts += [f"{self.dead} dead"] if self.dead else []
        told = f"{self.messages} messages: {', '.join(parts)} · {self.commits} commits"
        told += "" if self.snapshot_id is None else f", snapshot {self.snapshot_id}"
        return told if self.is_complete else f"{told} · stopped before the end"

    def record(self) -> dict[str, object]:
        return {
            "table": self.into,
            "source": self.source,
            "messages": self.messages,
            "upserts": self.upserts,
            "deletes": self.deletes,
            "truncates": self.truncates,
            "ignored": {name: count for name, count in sorted(self.ignored.items()) if count},
            "dead": self.dead,
            "commits": self.commits,
            "restarts": self.restarts,
            "complete": self.is_complete,
            "snapshot": self.snapshot_id,
            "position": None if self.position is None else json.loads(self.position),
        }
