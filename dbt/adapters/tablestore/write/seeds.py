"""A seed's CSV as Arrow, value by value: NULLs, quotes, 19-digit integers and decimals arrive unchanged.

WHY        SQL literals lose on the way: dbt-spark turns NULL into the text 'None' and 2**53+1 into a float.
INVARIANT  a value that does not fit its column's type is an error that names the column and the value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal, getcontext, localcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt.adapters.tablestore.plan.build_plan import plan_build
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings, table_spec
from dbt.adapters.tablestore.plan.run_context import PlanContext, SeedContext
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.model_job import ModelJob, read_situation
from tablestore_engine.api import Engine, FixData, FixRequest, OnSchemaChange, WriteMode, WriteSpec
from tablestore_engine.spi import ReadLog, aware, read_zone

if TYPE_CHECKING:
    import agate

_PLAIN: Mapping[str, pa.DataType] = {
    "bigint": pa.int64(), "long": pa.int64(), "int": pa.int32(), "integer": pa.int32(), "smallint": pa.int16(),
    "tinyint": pa.int8(), "double": pa.float64(), "float": pa.float32(), "real": pa.float32(),
    "boolean": pa.bool_(), "string": pa.string(), "date": pa.date32(), "timestamp_ntz": pa.timestamp("us"),
    "decimal": pa.decimal128(10, 0), "numeric": pa.decimal128(10, 0), "binary": pa.binary(),
}  # fmt: skip
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_TEXT = re.compile(r"(?:varchar|char)\s*\(\s*\d+\s*\)")
_TEXTS_OF_OTHERS = frozenset(
    {"varchar", "character varying", "text"}
)  # of packages that were made for other databases


def read_decimals_exactly() -> None:
    """Before dbt reads the CSV: agate rounds numbers to the thread's decimal context, 28 digits by default."""
    getcontext().prec = 76


def arrow_type(column: str, type_text: str, zone: str) -> pa.DataType:
    """Raises TS1830 for a type that a CSV cannot hold or that Spark does not know."""
    text = type_text.strip().lower()
    if text in _PLAIN:
        return _PLAIN[text]
    if text in ("timestamp", "timestamp_ltz"):
        return pa.timestamp("us", tz=zone)
    if decimal := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(decimal[1]), int(decimal[2] or 0))
    if _TEXT.fullmatch(text) or text in _TEXTS_OF_OTHERS:
        return pa.string()
    raise FixRequest(
        "TS1830",
        f"seed column {column!r} cannot have the type {type_text!r}",
        why="a seed column is a number, text, boolean, date or timestamp of Spark SQL",
        fix="change column_types of the seed",
    )


def infer_type(kind: str, values: Sequence[Any]) -> str:
    """Spark type of a column by agate's type name and its values."""
    match kind:
        case "Integer" | "Number":
            return _number_type([Decimal(value) for value in values if value is not None])
        case "Boolean":
            return "boolean"
        case "Date":
            return "date"
        case "DateTime" | "ISODateTime":
            return "timestamp"
        case _:
            return "string"


def _number_type(numbers: Sequence[Decimal]) -> str:
    """bigint or double where they hold every value exactly, else a decimal that does; NaN and infinity are doubles."""
    if not all(number.is_finite() for number in numbers):
        return "double"
    if all(number == number.to_integral_value() for number in numbers):
        return "bigint" if all(-(2**63) <= number < 2**63 for number in numbers) else "decimal(38,0)"
    if all(Decimal(repr(float(number))) == number for number in numbers):
        return "double"
    return f"decimal(38,{max(-int(number.as_tuple().exponent) for number in numbers)})"


def _check_header(names: Sequence[str]) -> None:
    """One column that is named like several: the file's delimiter is another one."""
    separators = [mark for mark in "|;\t," if len(names) == 1 and mark in names[0]]
    if separators:
        raise FixRequest(
            "TS1895",
            f"the seed has one column, named {names[0]!r}",
            why="as a column's name that is a syntax error in SQL; more likely the file has another delimiter",
            fix=f"set delimiter: {separators[0]!r} in the seed's config, or quote_columns: true if the name is meant",
        )


def seed_job(
    engine: Engine,
    relation: TablestoreRelation,
    settings: ModelSettings,
    table: agate.Table,
    context: SeedContext,
    zone: str,
) -> ModelJob:
    """All rows of the table are replaced. `zone`: of times without one."""
    rows, types = seed_to_arrow(table, context.column_types, zone=zone, quote_columns=context.quote_columns)
    spec = WriteSpec(
        table=table_spec(settings),
        mode=WriteMode.OVERWRITE_TABLE,
        checks=dict(settings.contract.checks),
        on_schema_change=OnSchemaChange.REPLACE,
    )
    known = PlanContext(existing=context.run.existing, full_refresh=True)
    plan = plan_build(settings.table, read_situation(engine, relation, "", types, known))
    work = (spec, rows)
    return ModelJob(relation, settings, plan, work, lambda: work, context.run, ReadLog())


def seed_to_arrow(
    table: agate.Table, column_types: Mapping[str, str], *, zone: str = "UTC", quote_columns: bool = False
) -> tuple[pa.Table, tuple[tuple[str, str], ...]]:
    """(rows, (name, Spark type) of each column). Raises TS1895 for a header that was not cut, TS1830, TS1831."""
    if not quote_columns:
        _check_header(table.column_names)
    overrides = {name.lower(): text for name, text in column_types.items()}
    arrays, types = [], []
    for name, kind in zip(table.column_names, table.column_types, strict=True):
        values = list(table.columns[name])
        inferred = infer_type(type(kind).__name__, values)
        type_text = overrides.get(name.lower(), inferred)
        types.append((name, type_text))
        arrays.append(_array(name, values, arrow_type(name, type_text, zone), zone))
    return pa.table(arrays, names=list(table.column_names)), tuple(types)


def _array(name: str, values: list[Any], kind: pa.DataType, zone: str) -> pa.Array:
    converted = [None if value is None else _convert(name, value, kind, zone) for value in values]
    try:
        return pa.array(converted, type=kind)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise FixData(
            "TS1831",
            f"a value of seed column {name!r} does not fit {kind}",
            why=str(error),
            fix="correct the CSV, or set column_types of the seed",
        ) from error


def _convert(name: str, value: Any, kind: pa.DataType, zone: str) -> Any:  # noqa: ANN401 - cells of any type
    """One cell as the Python value that Arrow takes exactly."""
    try:
        if pa.types.is_integer(kind):
            number = Decimal(str(value))
            if number != number.to_integral_value():
                raise ValueError("it has a fraction")
            return int(number)
        if pa.types.is_decimal(kind):
            return _exact_decimal(Decimal(str(value)), kind.scale)
        if pa.types.is_floating(kind):
            return float(value)
        if pa.types.is_boolean(kind):
            return value if isinstance(value, bool) else _BOOLEANS[str(value).strip().lower()]
        if pa.types.is_date(kind):
            return datetime.fromisoformat(
                str(value).strip()
            ).date()  # of a date and time the date, as SQL's cast
        if pa.types.is_timestamp(kind):
            return _moment(value, kind, zone)
        text = _text(value)
        return text.encode() if pa.types.is_binary(kind) else text
    except (ValueError, ArithmeticError, KeyError) as error:
        raise FixData(
            "TS1831",
            f"value {str(value)!r} of seed column {name!r} does not fit {kind}",
            why=str(error) or type(error).__name__,
            fix="correct the CSV, or set column_types of the seed",
        ) from error


def _exact_decimal(number: Decimal, scale: int) -> Decimal:
    with localcontext(prec=76):
        scaled = number.quantize(Decimal(1).scaleb(-scale))
    if scaled != number:
        raise ValueError(f"it has more than {scale} digits after the point")
    return scaled


_BOOLEANS = {
    **dict.fromkeys(("true", "t", "yes", "1"), True),
    **dict.fromkeys(("false", "f", "no", "0"), False),
}


def _moment(value: Any, kind: pa.DataType, zone: str) -> datetime:  # noqa: ANN401 - cells of any type
    """A cell without an offset is in the session's time zone, as it would be in SQL."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
    if kind.tz is None:
        return moment.replace(tzinfo=None)
    return aware(moment, read_zone(zone))


def _text(value: Any) -> str:  # noqa: ANN401 - cells of any type
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
