"""Which encoding keys and values of a log have, and which rows it carries at all.

CHANGE     which message formats there are, and for which tables (options log.format, log.key.format)
Kinds      debezium-json, canal-json, maxwell-json and avro carry every row kind. json is the row and nothing else.
           In mode upsert that is enough, as for Flink's upsert-kafka: the last row of a key counts, and a delete is a
           tombstone. In mode all a delete would look like an insert, so such a log takes inserts only. A table without
           a key may have one (rows that are taken out of it are refused: store/write/write_checks.py); one with a key
           updates and deletes, so it needs log.ignore-delete, which leaves -U and -D out.
INVARIANT  a log with ignore_delete is insert-only for its readers too: each message is a row that was put.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.options import OptionSet

# Debezium's `op`: what others write too, so that any topic of that format can be read
KIND_OF_OP = {
    "c": RowKind.INSERT,
    "r": RowKind.INSERT,
    "u": RowKind.UPDATE_AFTER,
    "d": RowKind.DELETE,
}


class ValueFormat(StrEnum):
    """Option log.format; names as Flink has them, avro is its debezium-avro-confluent."""

    DEBEZIUM_JSON = "debezium-json"
    CANAL_JSON = "canal-json"
    MAXWELL_JSON = "maxwell-json"
    JSON = "json"
    AVRO = "avro"


class KeyFormat(StrEnum):
    """Option log.key.format: keys have no row kind, so these are insert-only formats."""

    JSON = "json"
    AVRO = "avro"


@dataclass(frozen=True)
class LogFormats:
    """How messages of one log are written and read."""

    value: ValueFormat = ValueFormat.DEBEZIUM_JSON
    key: KeyFormat = KeyFormat.JSON
    ignore_delete: bool = False

    def needs_registry(self, *, is_keyed: bool) -> bool:
        """Whether a message names a schema that readers ask a registry for."""
        return self.value is ValueFormat.AVRO or (is_keyed and self.key is KeyFormat.AVRO)


def resolve_formats(options: OptionSet, table: str, *, is_keyed: bool, upserts: bool) -> LogFormats:
    """What the options say, which are checked one by one already. Raises FixRequest TS1762.

    `upserts`: whether the mode is upsert, where a delete is a message without a value.
    """
    formats = LogFormats(
        ValueFormat(options.text("log.format")),
        KeyFormat(options.text("log.key.format")),
        options.boolean("log.ignore-delete"),
    )
    if formats.value is ValueFormat.JSON and not (upserts or formats.ignore_delete):
        _check_inserts_only(options, table, is_keyed=is_keyed)
    return formats


def check_types(fields: Sequence[DataField], table: str) -> None:
    """Raises Unsupported TS1163 for columns that no format brings back as they were."""
    for field in fields:
        if any(part.root == "VARIANT" for part in field.type.walk()):
            raise Unsupported(
                "TS1163",
                f"column {field.name!r} of {table} cannot be published",
                why="it has a VARIANT, whose JSON text loses types: a DATE comes back as a string, a DOUBLE as a "
                "DECIMAL, and readers of the log would not have the rows of the table",
                fix="store it as a STRING beside, to_json(column), in a table with a log, or leave log.system out",
            )


def _check_inserts_only(options: OptionSet, table: str, *, is_keyed: bool) -> None:
    deletes = "partition.expiration-time" if options.find("partition.expiration-time") else None
    if is_keyed or deletes is not None:
        why = "its keys are updated and deleted" if is_keyed else f"{deletes!r} deletes rows"
        raise FixRequest(
            "TS1762",
            f"'log.format' = 'json' does not fit {table} in mode all",
            why=f"a message would be the row alone, and readers could not tell a delete from an insert; {why}",
            fix=(
                "leave 'log.changelog-mode' out (upsert: deletes are tombstones)"
                if is_keyed
                else "use debezium-json"
            )
            + ", or set 'log.ignore-delete' = 'true', which leaves deletes out of the log",
        )
