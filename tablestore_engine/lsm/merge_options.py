"""Whether the options of a schema fit its merge engine; asked when a table is made or altered, before anything changes.

CHANGE     which options go with which merge engine
INVARIANT  an option that would have no effect is refused, so is one that Paimon refuses with this engine.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.format.kind_column import check_kind_column
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.merge_engine_registry import get_engine
from tablestore_engine.lsm.option_errors import refused_option
from tablestore_engine.options import DEFAULT_FUNCTION, FieldOptions, OptionSet

_AGGREGATING = ("aggregation", "partial-update")
_NO_FUNCTIONS = "aggregate functions need a key, and merge-engine aggregation or partial-update"
_READ_BY = {
    "distinct": ("listagg", "collect"),
    "list-agg-delimiter": ("listagg",),
    "nested-key": ("nested_update",),
    "count-limit": ("nested_update",),
    "ts-field": ("merge_map_with_keytime",),
}
_OF_FUNCTIONS = ("aggregate-function", "ignore-retract", *_READ_BY)
_OF_ENGINES = {
    "aggregation.remove-record-on-delete": "aggregation",
    "partial-update.remove-record-on-delete": "partial-update",
    "partial-update.remove-record-on-sequence-group": "partial-update",
}
UNLOGGED = "changelog-producer.row-deduplicate-ignore-fields"
# merge engine → options of a new table that differ from those of other keyed tables
_DEFAULTS: Mapping[str, Mapping[str, str]] = {"first-row": {"deletion-vectors.enabled": "false"}}


def engine_defaults(options: Mapping[str, str]) -> Mapping[str, str]:
    """Options of a new keyed table that differ from those of other tables by its merge engine."""
    return _DEFAULTS.get(OptionSet(options).text("merge-engine"), {})


def check_merge_options(schema: TableSchema) -> None:
    """Raises FixRequest TS1155, TS1658; Unsupported TS1655."""
    name = OptionSet(schema.options).text("merge-engine") if schema.is_keyed else ""
    _check_fields(name, schema)
    check_kind_column(schema)
    if not schema.is_keyed:
        return
    engine = get_engine(name, schema)
    if engine.keeps_stored:
        _check_keeps_stored(name, schema)
    _check_unlogged(schema)


def _check_keeps_stored(name: str, schema: TableSchema) -> None:
    if schema.options.get("sequence.field"):
        raise refused_option(
            "sequence.field", f"merge-engine {name} keeps the row that came first, whatever its values are"
        )
    if schema.options.get("changelog-producer", "none") not in ("none", "lookup"):
        raise refused_option("changelog-producer", f"merge-engine {name} has none or lookup, as in Paimon")
    if schema.options.get("deletion-vectors.enabled", "false").strip().lower() == "true":
        raise refused_option(
            "deletion-vectors.enabled",
            f"merge-engine {name} replaces no row, and Paimon refuses both together",
        )


def _check_unlogged(schema: TableSchema) -> None:
    """Columns that a changelog ignores: of rows that it compares."""
    options = OptionSet(schema.options)
    for column in options.columns(UNLOGGED):
        if column not in schema.field_names or column in schema.primary_keys:
            raise refused_option(
                UNLOGGED, f"there is no column {column!r} outside the key", "correct the column"
            )
        if not options.boolean("changelog-producer.row-deduplicate"):
            raise refused_option(UNLOGGED, "only 'changelog-producer.row-deduplicate' = 'true' compares rows")
        if schema.options.get("changelog-producer", "none") != "lookup":
            raise refused_option(
                UNLOGGED, "only 'changelog-producer' = 'lookup' compares rows for the changelog"
            )


def _check_fields(name: str, schema: TableSchema) -> None:
    """Options of columns: of columns that there are, with an engine and a function that read them."""
    fields, columns = FieldOptions(schema.options), {field.name for field in schema.fields}
    aggregates = name in _AGGREGATING
    if DEFAULT_FUNCTION in schema.options and not aggregates:
        raise refused_option(DEFAULT_FUNCTION, _NO_FUNCTIONS)
    for option in _OF_FUNCTIONS:
        for key, parsed in fields.keys(option).items():
            column = parsed.columns[0]
            if not aggregates:
                raise refused_option(key, _NO_FUNCTIONS)
            if len(parsed.columns) > 1 or column not in columns:
                raise refused_option(
                    key, f"there is no column {','.join(parsed.columns)!r}", "correct the column"
                )
            _check_field(key, option, column, schema)
    for key in fields.keys("sequence-group"):
        if name != "partial-update":
            raise refused_option(key, "only merge-engine partial-update has sequence groups")
    for key, engine in _OF_ENGINES.items():
        if OptionSet(schema.options).find(key) not in (None, "false") and name != engine:
            raise refused_option(key, f"only merge-engine {engine} reads it")


def _check_field(key: str, option: str, column: str, schema: TableSchema) -> None:
    options, fields = OptionSet(schema.options), FieldOptions(schema.options)
    if column in schema.primary_keys:
        raise refused_option(key, "a column of the key has the same value in all versions")
    if column in options.columns("sequence.field"):
        raise refused_option(key, "a column of the sequence field has the newest value")
    function = fields.function(column)
    if option in _READ_BY and function not in _READ_BY[option] and schema.options[key] != "false":
        raise refused_option(key, f"the function is {function}, only {', '.join(_READ_BY[option])} reads it")
    removes = options.boolean("aggregation.remove-record-on-delete")
    if option == "ignore-retract" and removes and fields.ignores_retract(column):
        raise refused_option(
            key, "aggregation.remove-record-on-delete contradicts it, and Paimon refuses both together"
        )
