"""A value of a change message goes in exactly, or its message is refused by column and value: never another value.

Random values per type of Debezium, Canal and Maxwell, also such that no database sends, are decoded and compared with
what Python's decimal and datetime say of them. Dose: TABLESTORE_VALUES (messages per type and test).
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import os
import random
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pytest

from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.ingest.change_event import ReadRules
from tablestore_engine.ingest.ingest_spec import ChangeFormat
from tablestore_engine.ingest.message_decoder import MessageDecoder
from tablestore_engine.ingest.open_ingest import make_reader
from tablestore_engine.ingest.target_columns import Known, plan_columns, shape_rows
from tablestore_engine.log.message_source import RawMessages
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange

COUNT = int(os.environ.get("TABLESTORE_VALUES", "700"))
SEED = int(os.environ.get("TABLESTORE_SEED", "20261125"))
REFUSED = object()
EXACT = Context(prec=400)
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock
_JUNK: tuple[Any, ...] = (
    True, 1, -1, 1.5, "", "x", "NaN", "1_0", " 1", "0x1", [], {}, [1], {"a": 1}, 10**30, -(10**30), "Infinity", "é",
)  # fmt: skip
_RAW_ERRORS = r"C (long|integer)|Expected bytes|scalar of type|got a '|base 10"
Rng = random.Random


@dataclass(frozen=True)
class Kind:
    """`make`: a raw JSON value; `means`: what it is, or REFUSED. `column`: the type that the caller says."""

    make: Callable[[Rng], Any]
    means: Callable[[Any], Any]
    name: str | None = None
    wire: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    column: str | None = None


def whole(bits: int) -> Kind:
    """A signed number of so many bits."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return Kind(
        lambda rng: rng.choice((low, high, low - 1, high + 1, rng.randint(low, high), rng.randint(-9, 9))),
        lambda raw: raw if type(raw) is int and low <= raw <= high else REFUSED,
        wire=f"int{bits}",
    )


def counts(
    name: str, wire: str, per_second: int, means: Callable[[int], Any], column: str | None = None
) -> Kind:
    """A number of units, near the boundaries of days, of years and of its bits too."""
    day = 86_400 * per_second

    def make(rng: Rng) -> int:
        near = rng.choice(
            (0, day, -day, 2_932_897 * day, -719_162 * day, 1 << 31, 1 << 63, -(1 << 63), 35 * day)
        )
        return rng.choice((near + rng.randint(-2, 2), rng.randint(-40 * day, 40 * day), rng.randrange(day)))

    bits = 31 if wire == "int32" and column is None else 63
    return Kind(
        make,
        lambda raw: means(raw) if type(raw) is int and -(1 << bits) <= raw < 1 << bits else REFUSED,
        name,
        wire,
        column=column,
    )


def moment(raw: int, per_second: int) -> Any:
    """A wall clock; REFUSED outside of its years, or finer than microseconds."""
    micros = Decimal(raw) * 1_000_000 / per_second
    if micros != micros.to_integral_value():
        return REFUSED
    try:
        return _EPOCH + dt.timedelta(microseconds=int(micros))
    except OverflowError:
        return REFUSED


def fraction(part: Decimal) -> str:
    """`.5`, or nothing."""
    return format(part.normalize(EXACT), "f")[1:] if part else ""


def clock(raw: int, per_second: int) -> str:
    """Hours may be more than 24, and less than none."""
    seconds, rest = divmod(EXACT.divide(Decimal(abs(raw)), per_second), 1)
    minutes, second = divmod(int(seconds), 60)
    return f"{'-' if raw < 0 else ''}{minutes // 60:02}:{minutes % 60:02}:{second:02}{fraction(rest)}"


def moment_text(raw: int) -> Any:
    """Of nanoseconds, with all digits."""
    seconds, nanos = divmod(raw, 10**9)
    found = moment(seconds, 1)
    return found if found is REFUSED else f"{found.isoformat(' ')}.{nanos:09}"


def day(raw: int) -> Any:
    """A date of the years 1 to 9999."""
    try:
        return dt.date(1970, 1, 1) + dt.timedelta(days=raw)
    except OverflowError:
        return REFUSED


def milli_time(raw: int) -> Any:
    """A time of a day."""
    return (_EPOCH + dt.timedelta(milliseconds=raw)).time() if 0 <= raw < 86_400_000 else REFUSED


def instant_make(rng: Rng) -> str:
    """As Debezium writes it, with up to twelve digits, and zones."""
    digits = "".join(rng.choice("0000019") for _ in range(rng.choice((0, 1, 3, 6, 7, 9, 12))))
    base = _EPOCH.replace(
        rng.choice((1, 1900, 2026, 9999)), rng.randint(1, 12), rng.randint(1, 28), rng.randrange(24)
    )
    zone = rng.choice(("Z", "+00:00", "+05:30", "-08:00", "", "+25:00", "+0530"))
    return f"{base.isoformat()}{'.' + digits if digits else ''}{zone}"


def instant(raw: Any) -> Any:
    """In UTC; REFUSED when finer than microseconds, or without a zone."""
    parts = re.fullmatch(r"(.{19})(?:\.(\d+))?(Z|[+-](\d\d):(\d\d))", raw) if isinstance(raw, str) else None
    if parts is None or (parts[2] or "")[6:].strip("0") or (parts[4] and int(parts[4]) > 23):
        return REFUSED
    try:
        base = dt.datetime.fromisoformat(parts[1])
        micros = int(((parts[2] or "") + "000000")[:6])
        offset = dt.timedelta()
        if parts[4]:
            offset = dt.timedelta(hours=int(parts[4]), minutes=int(parts[5])) * (
                -1 if parts[3][0] == "-" else 1
            )
        return (base - offset).replace(microsecond=micros, tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        return REFUSED


def unscaled(number: int) -> str:
    """Base64 of a big-endian number."""
    return base64.b64encode(number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)).decode()


def decimal_make(rng: Rng) -> str:
    """Sometimes with more digits than the column."""
    return unscaled(rng.choice((-1, 1)) * rng.randrange(10 ** rng.choice((1, 5, 9, 10, 11, 40))))


def number_of(raw: Any) -> Any:
    """Of the bytes; REFUSED when they are none."""
    try:
        data = base64.b64decode(raw, validate=True) if isinstance(raw, str) else None
    except ValueError:
        return REFUSED
    return REFUSED if data is None else int.from_bytes(data, "big", signed=True)


def decimal(raw: Any) -> Any:
    """Of ten digits, three of them behind the point."""
    found = number_of(raw)
    return REFUSED if found is REFUSED or abs(found) >= 10**10 else Decimal(found).scaleb(-3)


def variable(raw: Any) -> Any:
    """A text of all digits."""
    try:
        scale, found = raw["scale"], number_of(raw["value"])
    except (TypeError, KeyError):
        return REFUSED
    return REFUSED if found is REFUSED else f"{Decimal(found).scaleb(-scale, EXACT):f}"


def double(raw: Any) -> Any:
    """A JSON number, or Java's words for what none is."""
    if isinstance(raw, str):
        words = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
        return words[raw] if raw in words else mysql_double(raw)
    if isinstance(raw, bool) or not isinstance(raw, (int, float, Decimal)):
        return REFUSED
    found = float(raw)
    return REFUSED if math.isinf(found) else found


def single(raw: Any) -> Any:
    """The nearest number of 32 bits."""
    found = double(raw)
    try:
        return found if found is REFUSED else struct.unpack("<f", struct.pack("<f", found))[0]
    except OverflowError:
        return REFUSED


def text(raw: Any) -> Any:
    """A JSON text."""
    return raw if isinstance(raw, str) else REFUSED


def floats(rng: Rng) -> float:
    """Also those that need more bits."""
    return rng.choice((rng.random(), rng.uniform(-1e300, 1e300), 0.1, -0.0, 1e-320, 16777217.0, 3.5e38))


def flags(rng: Rng) -> bool:
    """A truth value."""
    return rng.random() < 0.5


def flag(raw: Any) -> Any:
    """A truth value of JSON."""
    return raw if isinstance(raw, bool) else REFUSED


DEBEZIUM = {
    "int8": whole(8), "int16": whole(16), "int32": whole(32), "int64": whole(64),
    "boolean": Kind(flags, flag, wire="boolean"),
    "string": Kind(lambda rng: rng.choice(("", "Zoë ☃", "\x00", "a\nb", "12", "null")), text, wire="string"),
    "double": Kind(floats, double, wire="double"),
    "float": Kind(floats, single, wire="float"),
    "Date": counts("io.debezium.time.Date", "int32", 1, day),
    "Time": counts("io.debezium.time.Time", "int32", 1_000, milli_time),
    "Time as text": counts("io.debezium.time.Time", "int32", 1_000, lambda raw: clock(raw, 1_000), "STRING"),
    "MicroTime": counts("io.debezium.time.MicroTime", "int64", 1_000_000, lambda raw: clock(raw, 1_000_000)),
    "NanoTime": counts("io.debezium.time.NanoTime", "int64", 10**9, lambda raw: clock(raw, 10**9)),
    "Timestamp": counts("io.debezium.time.Timestamp", "int64", 1_000, lambda raw: moment(raw, 1_000)),
    "MicroTimestamp": counts("io.debezium.time.MicroTimestamp", "int64", 10**6, lambda raw: moment(raw, 10**6)),
    "NanoTimestamp": counts("io.debezium.time.NanoTimestamp", "int64", 10**9, lambda raw: moment(raw, 10**9)),
    "NanoTimestamp as text": counts("io.debezium.time.NanoTimestamp", "int64", 10**9, moment_text, "STRING"),
    "ZonedTimestamp": Kind(instant_make, instant, "io.debezium.time.ZonedTimestamp", "string"),
    "ZonedTimestamp as text": Kind(instant_make, text, "io.debezium.time.ZonedTimestamp", "string", column="STRING"),
    "Decimal": Kind(
        decimal_make, decimal, "org.apache.kafka.connect.data.Decimal", "bytes",
        {"scale": "3", "connect.decimal.precision": "10"},
    ),
    "VariableScaleDecimal": Kind(
        lambda rng: {"scale": rng.choice((-3, 0, 2, 60)), "value": decimal_make(rng)}, variable,
        "io.debezium.data.VariableScaleDecimal", "struct",
    ),
}  # fmt: skip


def texts(*samples: str) -> Callable[[Rng], str]:
    """One of these, or a number near the boundaries of MySQL's types."""
    boundaries = [
        str((1 << bits) + step) for bits in (7, 8, 15, 16, 23, 24, 31, 32, 63, 64) for step in (-1, 0, 1)
    ]
    return lambda rng: rng.choice(
        (*samples, *boundaries, f"-{rng.choice(boundaries)}", str(rng.randint(-300, 300)))
    )


def mysql_whole(low: int, high: int) -> Callable[[Any], Any]:
    """A number in a text."""

    def means(raw: Any) -> Any:
        if not isinstance(raw, str) or not re.fullmatch(r"[+-]?\d+", raw):
            return REFUSED
        return int(raw) if low <= int(raw) <= high else REFUSED

    return means


def mysql_decimal(digits: int, scale: int) -> Callable[[Any], Any]:
    """Exactly, with so many digits."""

    def means(raw: Any) -> Any:
        if not isinstance(raw, str) or "_" in raw or raw != raw.strip():
            return REFUSED
        try:
            found = Decimal(raw)
            fits = found.is_finite() and found == round(found, scale) and abs(found) < 10 ** (digits - scale)
        except InvalidOperation:
            return REFUSED
        return found if fits else REFUSED

    return means


def mysql_double(raw: Any) -> Any:
    """A number in a text; too large is none."""
    if raw in ("NaN", "Infinity", "-Infinity"):
        return float(raw)
    if not isinstance(raw, str) or not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", raw):
        return REFUSED
    return REFUSED if math.isinf(float(raw)) else float(raw)


def mysql_moment(places: int) -> Callable[[Any], Any]:
    """A wall clock."""

    def means(raw: Any) -> Any:
        shape = r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?)?"
        parts = re.fullmatch(shape, raw) if isinstance(raw, str) else None
        if parts is None or (parts[3] or "")[places:].strip("0"):
            return REFUSED
        try:
            return dt.datetime.fromisoformat(
                f"{parts[1]}T{parts[2] or '00:00:00'}.{((parts[3] or '') + '000000')[:6]}"
            )
        except ValueError:
            return REFUSED

    return means


def mysql_day(raw: Any) -> Any:
    """A date."""
    try:
        return (
            dt.date.fromisoformat(raw)
            if isinstance(raw, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", raw)
            else REFUSED
        )
    except ValueError:
        return REFUSED


MOMENTS = texts(
    "2026-02-28 12:34:56", "2026-02-28 12:34:56.1", "2026-02-28 12:34:56.123456", "2026-02-28 12:34:56.1234567",
    "2026-02-28 12:34:56.1230", "0000-00-00 00:00:00", "2026-02-30 00:00:00", "9999-12-31 23:59:59", "2026-02-28",
)  # fmt: skip
DAYS = texts("2026-02-28", "0000-00-00", "2026-02-30", "0001-01-01", "9999-12-31")
CLOCKS = texts("-838:59:59", "838:59:59.5", "12:00:00", "00:00:00.123456")
NUMBERS = texts("1.5", "-0.001", "1e400", "1E+2", "12345678.901", "NaN", "9" * 45)
CANAL = {
    "tinyint": Kind(texts(), mysql_whole(-(1 << 7), (1 << 7) - 1)),
    "tinyint unsigned": Kind(texts(), mysql_whole(-(1 << 15), (1 << 15) - 1)),
    "smallint": Kind(texts(), mysql_whole(-(1 << 15), (1 << 15) - 1)),
    "mediumint unsigned": Kind(texts(), mysql_whole(-(1 << 31), (1 << 31) - 1)),
    "int unsigned": Kind(texts(), mysql_whole(-(1 << 63), (1 << 63) - 1)),
    "bigint": Kind(texts(), mysql_whole(-(1 << 63), (1 << 63) - 1)),
    "bigint unsigned": Kind(texts(), mysql_decimal(20, 0)),
    "bit(64)": Kind(texts(), mysql_whole(-(1 << 63), (1 << 63) - 1)),
    "decimal(11,3)": Kind(NUMBERS, mysql_decimal(11, 3)),
    "decimal(65,30)": Kind(NUMBERS, text),
    "double": Kind(NUMBERS, mysql_double),
    "datetime": Kind(MOMENTS, mysql_moment(3)),
    "datetime(6)": Kind(MOMENTS, mysql_moment(6)),
    "date": Kind(DAYS, mysql_day),
    "time(6)": Kind(CLOCKS, text),
    "set('a','b')": Kind(texts("a,b", ""), text),
    "json": Kind(texts('{"a": 1.50}', '"x"'), text),
    "datetime(6) as text": Kind(MOMENTS, text, wire="datetime(6)", column="STRING"),
    "date as text": Kind(DAYS, text, wire="date", column="STRING"),
    "bit(64) as text": Kind(texts(), text, wire="bit(64)", column="STRING"),
}


def json_value(rng: Rng, depth: int = 2) -> Any:
    """Of a JSON column, or of a SET."""
    roll = rng.randrange(8 if depth else 5)
    match roll:
        case 0:
            return rng.choice((1, -5, 10**25))
        case 1:
            return rng.choice((1.5, 1e-7))
        case 2:
            return rng.choice(("", "a", 'q"', "Zoë ☃", "\\", "\u2028"))
        case 3:
            return rng.random() < 0.5
        case 4:
            return None if depth < 2 else "x"
        case 5 | 6:
            return [json_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {f"k{at}é": json_value(rng, depth - 1) for at in range(rng.randrange(4))}


class Document(str):
    """Compared as JSON, its numbers with all digits."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and _parsed(self) == _parsed(other)

    __hash__ = str.__hash__


def _parsed(document: str) -> Any:
    return json.dumps(json.loads(document, parse_float=lambda one: f"number {Decimal(one)}"), sort_keys=False)


def json_text(raw: Any) -> Any:
    """A text as it is, anything else as JSON."""
    return raw if isinstance(raw, str) else Document(json.dumps(raw))


def day_time(raw: Any) -> Any:
    """A number of milliseconds, or a text with three digits at most."""
    if type(raw) is int:
        return milli_time(raw)
    parts = re.fullmatch(r"(\d\d):(\d\d):(\d\d)(?:\.(\d+))?", raw) if isinstance(raw, str) else None
    if parts is None or (parts[4] or "")[3:].strip("0"):
        return REFUSED
    try:
        return dt.time(
            int(parts[1]), int(parts[2]), int(parts[3]), int(((parts[4] or "") + "000")[:3]) * 1000
        )
    except ValueError:
        return REFUSED


def bytes_of(raw: Any) -> Any:
    """Base64."""
    try:
        return base64.b64decode(raw, validate=True) if isinstance(raw, str) else REFUSED
    except ValueError:
        return REFUSED


def plain_decimal(raw: Any) -> Any:
    """A JSON number of ten digits, three of them behind the point."""
    if isinstance(raw, (bool, str)) or not isinstance(raw, (int, float, Decimal)):
        return REFUSED
    found = Decimal(str(raw))
    return found if abs(found) < 10**7 and found == round(found, 3) else REFUSED


MAXWELL = {
    "BIGINT": Kind(whole(64).make, whole(64).means, column="BIGINT"),
    "TINYINT": Kind(whole(8).make, whole(8).means, column="TINYINT"),
    "STRING": Kind(json_value, json_text, column="STRING"),
    "DOUBLE": Kind(floats, double, column="DOUBLE"),
    "BOOLEAN": Kind(flags, flag, column="BOOLEAN"),
    "DECIMAL": Kind(
        lambda rng: rng.choice((1, 1.5, 12345.678, 1.2345, 10**7, -5)), plain_decimal, column="DECIMAL(10,3)"
    ),
    "DATE": Kind(DAYS, lambda raw: day(raw) if type(raw) is int else mysql_day(raw), column="DATE"),
    "TIME": Kind(
        texts("12:34:56", "12:34:56.789", "12:34:56.7891", "-01:00:00", "24:00:00", "838:59:59", "12:34"),
        day_time,
        column="TIME(3)",
    ),
    "TIMESTAMP": Kind(
        MOMENTS, lambda raw: moment(raw, 10**6) if type(raw) is int else mysql_moment(6)(raw), column="TIMESTAMP(6)"
    ),
    "BYTES": Kind(lambda rng: base64.b64encode(rng.randbytes(rng.randrange(5))).decode(), bytes_of, column="BYTES"),
}  # fmt: skip


def debezium_message(kind: Kind, number: int, raw: Any) -> str:
    """With its schema."""
    node: dict[str, Any] = {"type": kind.wire, "optional": True, "field": "t", "parameters": kind.parameters}
    if kind.name:
        node["name"] = kind.name
    if kind.wire == "struct":
        node["fields"] = [{"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}]
    fields = [{"type": "int64", "optional": False, "field": "id"}, node]
    sides = [{"type": "struct", "field": side, "fields": fields} for side in ("before", "after")]
    schema = {"type": "struct", "fields": [*sides, {"type": "string", "field": "op"}]}
    payload = {
        "before": None,
        "after": {"id": number, "t": raw},
        "source": {"db": "d", "table": "t"},
        "op": "c",
    }
    return json.dumps({"schema": schema, "payload": payload}, separators=(",", ":"))


def canal_message(name: str) -> Callable[[Kind, int, Any], str]:
    """`name`: MySQL's type."""

    def made(kind: Kind, number: int, raw: Any) -> str:
        types = {"id": "bigint", "t": kind.wire or name}
        rows = [{"id": str(number), "t": raw}]
        message = {
            "database": "d",
            "table": "t",
            "type": "INSERT",
            "isDdl": False,
            "pkNames": ["id"],
            "data": rows,
        }
        return json.dumps({**message, "mysqlType": types})

    return made


def maxwell_message(_: Kind, number: int, raw: Any) -> str:
    """Without types."""
    row = {"id": number, "t": raw}
    return json.dumps({"database": "d", "table": "t", "type": "insert", "data": row})


def check(form: ChangeFormat, kind: Kind, message: Callable[[Kind, int, Any], str], rng: Rng) -> None:
    """Each message gives the row that it means, or is dead with column and value in its reason."""
    mixed = [rng.choice(_JUNK) if rng.random() < 0.05 else kind.make(rng) for _ in range(COUNT)]
    good: list[Any] = []
    while len(good) < COUNT:  # read at once, where a batch has no other values
        raw = kind.make(rng)
        good += [] if kind.means(raw) is REFUSED else [raw]
    for raws in (mixed, good):
        _check(form, kind, message, raws)


def _check(
    form: ChangeFormat, kind: Kind, message: Callable[[Kind, int, Any], str], raws: Sequence[Any]
) -> None:
    values = [message(kind, number, raw).encode() for number, raw in enumerate(raws)]
    raw_messages = RawMessages(
        np.zeros(COUNT, np.int64), np.arange(COUNT), [None] * COUNT, values, "", {}
    )  # fmt: skip
    said = {"id": parse_type("BIGINT")} | ({} if kind.column is None else {"t": parse_type(kind.column)})
    reader = make_reader(form, lambda _: "")
    rules = ReadRules(key=("id",), types=said)
    changes = MessageDecoder(reader, rules).decode(raw_messages)
    fields = [DataField(0, one, type_) for one, type_ in said.items()]
    known = Known(fields, said, OnSchemaChange.APPEND_NEW_COLUMNS, "t", is_new=True)
    shaped = shape_rows(changes.parts, plan_columns(changes, known, str), ("id",), frozenset())
    dead = {one.number: one.reason for one in (*shaped.dead, *changes.dead)}
    found = {row["id"]: row["t"] for row in shaped.rows.to_pylist() if row["id"] not in dead}
    assert sorted([*found, *dead]) == list(range(COUNT))
    for number, raw in enumerate(raws):
        parsed = (
            json.loads(json.dumps(raw), parse_float=Decimal) if form is not ChangeFormat.CANAL_JSON else raw
        )
        expected = kind.means(raw)
        if expected is REFUSED:
            assert number in dead, f"{raw!r} became {found.get(number)!r}"
            assert dead[number].startswith("column t"), dead[number]
            assert _shown(parsed) in dead[number], (dead[number], raw)
            assert not re.search(
                r"C (long|integer)|Expected bytes|scalar of type|got a '|base 10", dead[number]
            ), dead[number]
        else:
            assert number in found, f"{raw!r}: {dead.get(number)}"
            assert _same(found[number], expected), f"{raw!r} became {found[number]!r}, expected {expected!r}"


def _shown(raw: Any) -> str:
    return (raw if isinstance(raw, str) else str(raw) if isinstance(raw, (int, Decimal)) else "")[:20]


def _same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        return (isinstance(found, float) and struct.pack("d", found) == struct.pack("d", expected)) or (
            math.isnan(expected) and math.isnan(found)
        )
    if isinstance(expected, Document):
        return expected == found
    return type(found) is type(expected) and bool(found == expected)


@pytest.mark.parametrize("name", DEBEZIUM)
def test_a_value_of_debezium_goes_in_exactly_or_is_refused(name: str) -> None:
    """Every type with a schema, at once and one by one, against decimal and datetime."""
    check(ChangeFormat.DEBEZIUM_JSON, DEBEZIUM[name], debezium_message, Rng(f"{SEED}/{name}"))


@pytest.mark.parametrize("name", CANAL)
def test_a_value_of_canal_goes_in_exactly_or_is_refused(name: str) -> None:
    """Every type of MySQL, whose values are texts."""
    check(ChangeFormat.CANAL_JSON, CANAL[name], canal_message(name), Rng(f"{SEED}/{name}"))


@pytest.mark.parametrize("name", MAXWELL)
def test_a_value_of_maxwell_goes_in_exactly_or_is_refused(name: str) -> None:
    """Every type that a caller may say; JSON documents and SETs become JSON texts."""
    check(ChangeFormat.MAXWELL_JSON, MAXWELL[name], maxwell_message, Rng(f"{SEED}/{name}"))
