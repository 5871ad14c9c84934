"""The default of a column: a text in the schema, whose value takes the place of NULL when rows are written.

CHANGE     defaults of columns: which texts, which types (option fields.<column>.default-value)
PAIMON     since 1.2 a writer replaces each NULL of the column, given or missing; readers and compactions replace none.
           The text is cast by Java's rules, one pair of single quotes around it is left out.
INVARIANT  only texts that each version of Java casts to the same value are built here. A table of another engine with
           any other default is not written.
WHY        key columns and bucket keys have none: the place of a row is computed before NULL is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import INTEGER_ROOTS, DataField, DataType
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import type_to_text

_OPTION = "default-value"
_NUMBER = r"[+-]?[0-9]+(\.[0-9]+)?"
_LITERAL = re.compile(
    rf"(?P<plain>{_NUMBER}([eE][+-]?[0-9]+)?|true|false)|((date|timestamp|timestamp_ntz)\s*)?"
    r"(?P<quote>['\"])(?P<text>[^'\"\\]*)(?P=quote)",
    re.IGNORECASE,
)
# root → the texts that are built, and what an error says of them
_TEXTS = {
    "BOOLEAN": (r"(?i:true|false)", "true or false"),
    "FLOAT": (rf"{_NUMBER}([eE][+-]?[0-9]{{1,3}})?", "a number"),
    "DOUBLE": (rf"{_NUMBER}([eE][+-]?[0-9]{{1,3}})?", "a number"),
    "DECIMAL": (_NUMBER, "a number"),
    "DATE": (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "a date such as 2026-01-31"),
    "TIMESTAMP": (
        r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?",
        "a time such as 2026-01-31 12:00:00",
    ),
    "VARCHAR": (r"(?s:.*)", "a text"),
    **dict.fromkeys(INTEGER_ROOTS, (r"[+-]?[0-9]{1,19}", "a whole number")),
}


def literal_default(sql: str, column: str) -> str:
    """The text that the schema keeps for `DEFAULT sql` of a statement. Raises FixRequest TS1153 for an expression."""
    found = _LITERAL.fullmatch(sql.strip())
    if found is None:
        raise FixRequest(
            "TS1153",
            f"column {column!r} cannot have the default {sql.strip()}",
            why="the schema of a table keeps a literal; expressions and texts with quotes or backslashes are none",
            fix="write a number, true, false or a text in quotes; compute anything else in the query that writes",
        )
    return found["plain"] or f"'{found['text']}'"


def default_value(field: DataField) -> pa.Scalar | None:
    """In the Arrow type of the column; None without a default. Raises FixRequest TS1153."""
    return None if field.default_value is None else _value(field.name, field.type, field.default_value)


@lru_cache(maxsize=1024)
def _value(column: str, type_: DataType, text: str) -> pa.Scalar:
    pattern, expected = _TEXTS.get(type_.root, (None, ""))
    if pattern is None:
        raise _refused(
            column, type_, text, "defaults of this type differ between engines, or with their time zone"
        )
    if text.startswith("'") and text.endswith("'"):
        if len(text) == 1:
            raise _refused(column, type_, text, "a quote alone is no text")
        text = text[1:-1]
    if not re.fullmatch(pattern, text):
        raise _refused(column, type_, text, f"expected {expected}")
    try:
        return _cast(text, type_)
    except (pa.ArrowInvalid, ArithmeticError) as wrong:
        raise _refused(column, type_, text, str(wrong).splitlines()[0] or "it does not fit") from None


def _cast(text: str, type_: DataType) -> pa.Scalar:
    target = type_to_arrow(type_)
    if type_.root == "VARCHAR":
        if len(text) > (type_.length or 0):
            raise pa.ArrowInvalid(f"it is longer than {type_.length}")
        return pa.scalar(text, target)
    if type_.root == "DECIMAL":
        exact = Context(prec=80, rounding=ROUND_HALF_UP)
        made = Decimal(text).quantize(Decimal(1).scaleb(-(type_.scale or 0)), context=exact)
        return pa.scalar(made, target)
    if type_.root in ("FLOAT", "DOUBLE"):
        value = pa.scalar(text).cast(target)
        if pc.is_inf(value).as_py():
            raise pa.ArrowInvalid("it is out of range")
        return value
    if type_.root == "BOOLEAN":
        return pa.scalar(text.lower() == "true", target)
    return pa.scalar(text.removeprefix("+")).cast(target)


def _refused(column: str, type_: DataType, text: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1153",
        f"column {column!r} ({type_to_text(type_)}) cannot have the default {text}",
        why=why,
        fix="write a default that fits the type, or leave it out and give the value in each write",
    )


def shown_default(text: str) -> str:
    """A default of a schema as SQL writes it: texts of Flink have no quotes."""
    return text if _LITERAL.fullmatch(text) else "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def find_other_default(schema: TableSchema) -> str | None:
    """A default that cannot be followed here, as another engine may have made it."""
    for field in schema.fields:
        try:
            _check_place(schema, field)
            default_value(field)
        except FixRequest:
            return f"column {field.name} DEFAULT {field.default_value}"
    return None


def check_defaults(schema: TableSchema, before: TableSchema | None = None) -> None:
    """Defaults that `before` does not have as they are. Raises FixRequest TS1153."""
    known = {} if before is None else {field.id: field for field in before.fields}
    for field in schema.fields:
        old = known.get(field.id)
        if old is None or (old.type, old.default_value) != (field.type, field.default_value):
            _check_place(schema, field)
            default_value(field)


def _check_place(schema: TableSchema, field: DataField) -> None:
    if field.default_value is None or field.name not in {*schema.primary_keys, *schema.bucket_keys}:
        return
    raise _refused(field.name, field.type, field.default_value, "its value says where a row is stored")


def option_key(column: str) -> str:
    return f"fields.{column}.{_OPTION}"


def take_options(schema: TableSchema, keys: Iterable[str]) -> TableSchema:
    """With the defaults that options of `keys` name, `fields.<column>.default-value`, as those of the columns, where
    writers look for them; the options are not kept. An empty text takes the default away. Raises FixRequest TS1153.
    """
    asked = set(keys) & schema.options.keys()  # one that another engine stored has no effect, as in Paimon
    given = {
        key: key[7 : -len(_OPTION) - 1]
        for key in sorted(asked)
        if key == option_key(key[7 : -len(_OPTION) - 1])
    }
    if not given:
        return schema
    places = {field.name.lower(): at for at, field in enumerate(schema.fields)}
    fields = list(schema.fields)
    for key, column in given.items():
        at = places.get(column.lower())
        if at is None:
            raise FixRequest(
                "TS1153",
                f"option {key!r} names no column",
                why=f"the columns are {', '.join(schema.field_names)}",
                fix="correct the name of the column",
            )
        fields[at] = replace(fields[at], default_value=schema.options[key] or None)
    options = {key: value for key, value in schema.options.items() if key not in given}
    return replace(schema, fields=tuple(fields), options=options)


def without_defaults(schema: TableSchema) -> TableSchema:
    """For rows that stay as they are: those of the table that a statement writes again."""
    if all(field.default_value is None for field in schema.fields):
        return schema
    return replace(schema, fields=tuple(replace(field, default_value=None) for field in schema.fields))


def filled(column: pa.ChunkedArray | pa.Array, field: DataField) -> pa.ChunkedArray | pa.Array:
    """The column of the field's type with its default for NULL."""
    if field.default_value is None or not column.null_count:
        return column
    return pc.fill_null(column, default_value(field))
