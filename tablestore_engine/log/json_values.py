"""Arrow columns as JSON text, one text per row, by whole columns.

CHANGE     a value in a JSON message
Texts      as Flink's JSON formats read them:
           numbers exact, decimals plain with all their digits · NaN, Infinity, -Infinity as strings ·
           DATE '2020-01-31' · TIME '12:00:01.5' · TIMESTAMP '2020-01-31 12:00:01.5' · LTZ the same in UTC with Z ·
           binary base64 · ARRAY, MAP, ROW as JSON array, object, object; a MULTISET is a MAP element → count
INVARIANT  fractions of a second carry no trailing zeros, and no point when there is none.
FLINK      reads maps with character keys only; other atomic keys are written as their text.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from tablestore_engine.errors import FixData, Unsupported

_FIRST_DAY, _LAST_DAY = -96464927, 95025871  # years -262142 to 262141: beyond, polars panics
_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_ATOMIC = (
    *(pat.is_string, pat.is_large_string, pat.is_string_view, pat.is_binary, pat.is_large_binary),
    *(pat.is_boolean, pat.is_integer, pat.is_floating, pat.is_decimal, pat.is_date, pat.is_time),
)
_FRACTION_DIGITS = {"s": 3, "ms": 3, "us": 6, "ns": 9}


def json_texts(column: pa.ChunkedArray | pa.Array) -> pl.Series:
    """JSON text of each value. Raises Unsupported TS1715, FixData TS1716."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combine_chunks keeps chunks when text exceeds 2 GiB
        return pl.concat([json_texts(chunk) for chunk in array.chunks])
    if pat.is_dictionary(array.type):
        array = array.dictionary_decode()
    texts = _nested_texts(array) if pat.is_nested(array.type) else _atomic_texts(array)
    return texts.fill_null("null")


def _atomic_texts(array: pa.Array) -> pl.Series:
    """Texts with nulls where the value is null."""
    kind = array.type
    if pat.is_timestamp(kind):
        return _timestamp_texts(array)
    if pat.is_fixed_size_binary(kind):
        array, kind = array.cast(pa.binary()), pa.binary()
    if not any(is_kind(kind) for is_kind in _ATOMIC):
        raise _unsupported(kind)
    values = _series(array)
    if pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind):
        return _string_texts(values)
    if pat.is_floating(kind):
        return _float_texts(values)
    if pat.is_boolean(kind) or pat.is_integer(kind) or pat.is_decimal(kind):
        return values.cast(pl.String)
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return _quoted(values.bin.encode("base64"))
    if pat.is_date(kind):
        _check_years(array.cast(pa.date32()).cast(pa.int32()), 1)
        return _quoted(values.dt.strftime("%F"))
    return _quoted(_without_zeros(values.dt.strftime("%T%.9f")))


def _series(array: pa.Array) -> pl.Series:
    made = pl.from_arrow(array)
    assert isinstance(made, pl.Series)
    return made


def _string_texts(values: pl.Series) -> pl.Series:
    """Escaping is done by polars' own JSON writer; its texts of nulls are made null again."""
    texts = (
        values.alias("s").to_frame().select(pl.struct("s").struct.json_encode()).to_series()
        .str.strip_prefix('{"s":').str.strip_suffix("}")
    )  # fmt: skip
    return _masked(texts, values) if values.null_count() else texts


def _float_texts(values: pl.Series) -> pl.Series:
    """Shortest text that reads back as the same float; JSON has no numbers for the other three."""
    texts = values.cast(pl.String)
    if values.is_finite().all():
        return texts
    special = {"NaN": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
    return texts.replace(special)


def _timestamp_texts(array: pa.Array) -> pl.Series:
    unit, zone = array.type.unit, array.type.tz
    # a zoned value is UTC inside: taking the zone off leaves the UTC wall clock
    counts = array.cast(pa.int64())
    _check_years(counts, _PER_DAY[unit])
    values = _series(counts.cast(pa.timestamp(unit)))
    texts = _without_zeros(values.dt.strftime(f"%F %T%.{_FRACTION_DIGITS[unit]}f"))
    return _quoted(texts, suffix='Z"' if zone is not None else '"')


def _check_years(counts: pa.Array, per_day: int) -> None:
    ends = pc.min_max(counts).as_py()
    if ends["min"] is None or (_FIRST_DAY * per_day <= ends["min"] and ends["max"] <= _LAST_DAY * per_day):
        return
    raise FixData(
        "TS1716",
        "a date or timestamp cannot be published",
        why=f"expected years -262142 to 262141, got days {ends['min'] // per_day} to {ends['max'] // per_day} "
        "since 1970-01-01",
        fix="correct the value; nothing of its snapshot was published",
    )


def _without_zeros(texts: pl.Series) -> pl.Series:
    """12:00:01.500 -> 12:00:01.5 and 12:00:00.000 -> 12:00:00: a point is always there, so no hour is eaten."""
    return texts.str.strip_chars_end("0").str.strip_chars_end(".")


def _quoted(texts: pl.Series, *, suffix: str = '"') -> pl.Series:
    return _select(pl.concat_str([pl.lit('"'), pl.col("x"), pl.lit(suffix)]), x=texts)


def _masked(texts: pl.Series, like: pl.Series) -> pl.Series:
    return _select(pl.when(pl.col("y")).then(pl.col("x")), x=texts, y=like.is_not_null())


def _select(expression: pl.Expr, **columns: pl.Series) -> pl.Series:
    return pl.DataFrame(columns).select(expression).to_series()


def _nested_texts(array: pa.Array) -> pl.Series:
    """Children first, by whole columns; then each parent joins the texts of its children."""
    kind = array.type
    if pat.is_struct(kind):
        named = [(kind.field(i).name, array.field(i)) for i in range(kind.num_fields)]
        texts = object_texts(tuple((name, json_texts(child)) for name, child in named), len(array))
    elif pat.is_map(kind):
        first, length = _child_range(array)
        keys = _key_texts(array.keys.slice(first, length))
        pairs = _select(
            pl.concat_str(["k", pl.lit(":"), "v"]), k=keys, v=json_texts(array.items.slice(first, length))
        )
        texts = _joined(array, first, pairs, "{", "}")
    elif pat.is_list(kind) or pat.is_large_list(kind):
        first, length = _child_range(array)
        texts = _joined(array, first, json_texts(array.values.slice(first, length)), "[", "]")
    else:
        raise _unsupported(kind)
    valid = _series(array.is_valid())
    return _select(pl.when(pl.col("y")).then(pl.col("x")), x=texts, y=valid)


def object_texts(members: tuple[tuple[str, pl.Series], ...], rows: int) -> pl.Series:
    """{"name":text,…} of each row from the texts of its members."""
    parts: list[pl.Expr] = []
    columns: dict[str, pl.Series] = {}
    before = "{"
    for number, (name, texts) in enumerate(members):
        parts += [pl.lit(before + json_name(name) + ":"), pl.col(str(number))]
        columns[str(number)] = texts
        before = ","
    if not members:
        return pl.Series(["{}"] * rows, dtype=pl.String)
    return _select(pl.concat_str([*parts, pl.lit("}")]), **columns)


def json_name(name: str) -> str:
    """A column name as a JSON string, escaped as the values are."""
    return str(_string_texts(pl.Series([name], dtype=pl.String))[0])


def _child_range(array: pa.Array) -> tuple[int, int]:
    """Where the children of a possibly sliced list lie: converting all of them per slice would be quadratic."""
    offsets = array.offsets
    first = offsets[0].as_py()
    return first, offsets[-1].as_py() - first


def _joined(array: pa.Array, first: int, children: pl.Series, begin: str, end: str) -> pl.Series:
    offsets = pc.subtract(array.offsets.cast(pa.int64()), first)
    lists = pa.LargeListArray.from_arrays(offsets, children.to_arrow().cast(pa.large_string()))
    inner = _series(pc.binary_join(lists, pa.scalar(",", pa.large_string())))
    return _select(pl.concat_str([pl.lit(begin), "x", pl.lit(end)]), x=inner)


def _key_texts(keys: pa.Array) -> pl.Series:
    if pat.is_nested(keys.type):
        raise _unsupported(pa.map_(keys.type, pa.null()))
    texts = json_texts(keys)
    return _select(
        pl.when(pl.col("x").str.starts_with('"'))
        .then("x")
        .otherwise(pl.concat_str([pl.lit('"'), "x", pl.lit('"')])),
        x=texts,
    )


def _unsupported(kind: pa.DataType) -> Unsupported:
    return Unsupported(
        "TS1715",
        f"a column of type {kind} cannot be published",
        why="it has no text in the format debezium-json",
        fix="leave the column out of the table, or set 'log.system' = 'none'",
    )
