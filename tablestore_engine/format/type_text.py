"""Types as the schema file writes them: text for atomic types, JSON objects for nested ones (format.md#types).

Steps      parse: split into words, numbers and signs → name, parameters, time-zone words → nullability
INVARIANT  type_from_json(type_to_json(t)) == t for every type; case and spaces of the text do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.data_type import (
    NESTED_ROOTS,
    OPAQUE_ROOTS,
    STRING_LENGTH,
    TIMESTAMP_ROOTS,
    DataField,
    DataType,
)

_TOKEN = re.compile(r"\s*(?:(?P<word>[A-Za-z_][A-Za-z_0-9]*)|(?P<number>\d+)|(?P<sign>[(),]))")
_LENGTHS = {"CHAR": 1, "VARCHAR": 1, "BINARY": 1, "VARBINARY": 1}  # name → length when none is written
_TIMES = {"TIME": 0, "TIMESTAMP": 6, "TIMESTAMP_LTZ": 6}
_ALIASES = {"INTEGER": "INT", "NUMERIC": "DECIMAL", "DEC": "DECIMAL"}
_PLAIN = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", *OPAQUE_ROOTS)
MAX_DECIMAL_PRECISION = 38
MAX_TIME_PRECISION = 9


def parse_type(text: str) -> DataType:
    """The atomic type that `text` names, e.g. ``decimal( 10,2 ) not null`` (format.md#types).

    Raises FixRequest TS1101 when the text is no type or a parameter is out of range.
    """
    tokens = _tokens(text)
    nullable = True
    if tokens[-2:] == ["NOT", "NULL"]:
        tokens, nullable = tokens[:-2], False
    elif len(tokens) > 1 and tokens[-1] == "NULL":
        tokens = tokens[:-1]
    if not tokens:
        raise _bad_type(text, "the name of a type is missing")
    name, rest = _ALIASES.get(tokens[0], tokens[0]), tokens[1:]
    numbers, rest = _parameters(text, rest)
    name = _with_words(text, name, rest)
    return _build(text, name, numbers).with_nullable(nullable)


def type_to_text(type_: DataType) -> str:
    """The exact text of the schema file, e.g. ``DECIMAL(10, 2) NOT NULL``; nested ones ``ARRAY<INT>`` (in messages)."""
    return _root_text(type_) + ("" if type_.nullable else " NOT NULL")


def type_from_json(value: object) -> DataType:
    """The type of a schema file's JSON value: text, or an object if nested. Raises FixData TS1102 otherwise."""
    if isinstance(value, str):
        return parse_type(value)
    if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
        raise _bad_json(value, "a text or an object with a text 'type' is expected")
    words = str(value["type"]).upper().split()
    root, nullable = (words[0] if words else ""), words[1:] != ["NOT", "NULL"]
    if root not in NESTED_ROOTS or words[1:] not in ([], ["NOT", "NULL"], ["NULL"]):
        raise _bad_json(value, f"type {value['type']!r} is not one of {', '.join(NESTED_ROOTS)}")
    try:
        return _nested_from_json(root, value).with_nullable(nullable)
    except KeyError as missing:
        raise _bad_json(value, f"the key {missing} is missing") from missing


def type_to_json(type_: DataType) -> str | dict[str, object]:
    """The JSON value of a type for the schema file: text if atomic, else an object (format.md#types)."""
    if type_.root not in NESTED_ROOTS:
        return type_to_text(type_)
    out: dict[str, object] = {"type": type_.root + ("" if type_.nullable else " NOT NULL")}
    for name, child in (("element", type_.element), ("key", type_.key), ("value", type_.value)):
        if child is not None:
            out[name] = type_to_json(child)
    if type_.root == "ROW":
        out["fields"] = [field_to_json(field) for field in type_.fields]
    if type_.root == "VECTOR":
        out["length"] = type_.length
    return out


def field_from_json(value: object) -> DataField:
    """One column of a schema file: id, name, type, optional description and defaultValue. FixData TS1102."""
    if not isinstance(value, Mapping):
        raise _bad_json(value, "a column is an object")
    try:
        return DataField(
            id=int(value["id"]),
            name=str(value["name"]),
            type=type_from_json(value["type"]),
            description=_optional_text(value.get("description")),
            default_value=_optional_text(value.get("defaultValue")),
        )
    except KeyError as missing:
        raise _bad_json(value, f"the key {missing} is missing") from missing


def field_to_json(field: DataField) -> dict[str, object]:
    """The JSON object of one column; absent texts are left out (format.md#types)."""
    out: dict[str, object] = {"id": field.id, "name": field.name, "type": type_to_json(field.type)}
    if field.description is not None:
        out["description"] = field.description
    if field.default_value is not None:
        out["defaultValue"] = field.default_value
    return out


def _tokens(text: str) -> list[str]:
    """Upper-case words, numbers and signs of a type's text."""
    tokens: list[str] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise _bad_type(text, f"{text[at:].strip()!r} cannot stand there")
        tokens.append(match.group().strip().upper())
        at = match.end()
    return tokens


def _parameters(text: str, tokens: list[str]) -> tuple[list[int], list[str]]:
    """Numbers in the parentheses that may follow the name, and the tokens behind them."""
    if not tokens or tokens[0] != "(":
        return [], tokens
    if ")" not in tokens:
        raise _bad_type(text, "')' is missing")
    close = tokens.index(")")
    inner = tokens[1:close]
    if not all(t == "," if i % 2 else t.isdigit() for i, t in enumerate(inner)) or len(inner) % 2 == 0:
        raise _bad_type(text, "numbers with commas are expected in the parentheses")
    return [int(t) for t in inner[::2]], tokens[close + 1 :]


def _with_words(text: str, name: str, words: Sequence[str]) -> str:
    """The root after the words that follow its parameters (time zone, PRECISION)."""
    tail = " ".join(words)
    if not tail or (name in ("TIME", "TIMESTAMP") and tail == "WITHOUT TIME ZONE"):
        return name
    if name == "TIMESTAMP" and tail == "WITH LOCAL TIME ZONE":
        return "TIMESTAMP_LTZ"
    if name == "DOUBLE" and tail == "PRECISION":
        return name
    raise _bad_type(text, f"{tail!r} cannot follow {name}")


def _build(text: str, name: str, numbers: list[int]) -> DataType:
    """The type of a root name and its parameters, both checked."""
    if name == "DECIMAL":
        precision, scale = [*numbers, *(10, 0)[len(numbers) :]][:2] if len(numbers) != 1 else (numbers[0], 0)
        _check_range(text, "precision", precision, 1, MAX_DECIMAL_PRECISION)
        _check_range(text, "scale", scale, 0, precision)
        _check_count(text, numbers, 2)
        return DataType("DECIMAL", precision=precision, scale=scale)
    if name in _LENGTHS:
        _check_count(text, numbers, 1)
        length = numbers[0] if numbers else _LENGTHS[name]
        _check_range(text, "length", length, 1, STRING_LENGTH)
        return DataType(name, length=length)
    if name in _TIMES:
        _check_count(text, numbers, 1)
        precision = numbers[0] if numbers else _TIMES[name]
        _check_range(text, "precision", precision, 0, MAX_TIME_PRECISION)
        return DataType(name, precision=precision)
    _check_count(text, numbers, 0)
    if name in ("STRING", "BYTES"):
        return DataType("VARCHAR" if name == "STRING" else "VARBINARY", length=STRING_LENGTH)
    if name in _PLAIN:
        return DataType(name)
    raise _bad_type(text, f"{name!r} is not a type")


def _nested_from_json(root: str, value: Mapping[str, object]) -> DataType:
    """A nested type from its object; KeyError names a missing part."""
    if root == "MAP":
        return DataType("MAP", key=type_from_json(value["key"]), value=type_from_json(value["value"]))
    if root == "ROW":
        fields = value["fields"]
        if not isinstance(fields, list):
            raise _bad_json(value, "'fields' must be a list")
        return DataType("ROW", fields=tuple(field_from_json(field) for field in fields))
    element = type_from_json(value["element"])
    if root == "VECTOR":
        return DataType("VECTOR", element=element, length=int(str(value["length"])))
    return DataType(root, element=element)


def _root_text(type_: DataType) -> str:
    """The text of a type without its nullability."""
    root = type_.root
    if type_.collation is not None:
        return f"{_root_text(replace(type_, collation=None))} COLLATE {type_.collation}"
    if root in ("VARCHAR", "VARBINARY") and type_.length == STRING_LENGTH:
        return "STRING" if root == "VARCHAR" else "BYTES"
    if root in _LENGTHS:
        return f"{root}({type_.length})"
    if root == "DECIMAL":
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if root == "TIMESTAMP_LTZ":
        return f"TIMESTAMP({type_.precision}) WITH LOCAL TIME ZONE"
    if root == "TIME" or root in TIMESTAMP_ROOTS:
        return f"{root}({type_.precision})"
    if root not in NESTED_ROOTS:
        return root
    if root == "ROW":
        return "ROW<" + ", ".join(f"{f.name} {type_to_text(f.type)}" for f in type_.fields) + ">"
    inner = ", ".join(type_to_text(child) for child in type_.children())
    return f"{root}<{inner}, {type_.length}>" if root == "VECTOR" else f"{root}<{inner}>"


def _optional_text(value: object) -> str | None:
    return None if value is None else str(value)


def _check_range(text: str, what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise _bad_type(text, f"{what} {value} is not in {low} … {high}")


def _check_count(text: str, numbers: Sequence[int], most: int) -> None:
    if len(numbers) > most:
        raise _bad_type(text, f"{len(numbers)} parameters, at most {most} expected")


def _bad_type(text: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1101",
        f"type {text!r} cannot be read",
        why=why,
        fix="use a type of the format, for example INT, STRING, DECIMAL(10, 2), TIMESTAMP(6) NOT NULL",
    )


def _bad_json(value: object, why: str) -> FixData:
    return FixData(
        "TS1102",
        f"the type {str(value)[:200]} of a schema file cannot be read",
        why=why,
        fix="the schema file is damaged or of an unknown version: restore it, or report it",
    )
