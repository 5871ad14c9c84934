"""Arrow columns as JSON text, one text per row, by whole columns.

CHANGE     a value in a JSON message
Texts      as Flink's JSON formats read them:
           numbers exact, decimals plain with all their digits · NaN, Infinity, -Infinity as strings ·
           DATE '2020-01-31' · TIME '12:00:01.5' · TIMESTAMP '2020-01-31 12:00:01.5' · LTZ the same in UTC with Z ·
           binary base64 · ARRAY, MAP, ROW as JSON array, object, object; a MULTISET is a MAP element → count
INVARIANT  fractions of a second carry no trailing zeros, and no point when there is none.
Speed      quotes around a column without nulls are joined with the text between columns, once per row. Text that needs
           no escapes is taken as it is. Arrow writes dates of years 1 to 9999, faster than polars (decision 0156)
FLINK      reads maps with character keys only; other atomic keys are written as their text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from tablestore_engine.errors import FixData, Unsupported

_FIRST_DAY, _LAST_DAY = -96464927, 95025871  # years -262142 to 262141: beyond, polars panics
_FIRST_FOUR_DIGITS, _LAST_FOUR_DIGITS = -719_162, 2_932_896  # years 1 to 9999
_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_ATOMIC = (
    *(pat.is_string, pat.is_large_string, pat.is_string_view, pat.is_binary, pat.is_large_binary),
    *(pat.is_boolean, pat.is_integer, pat.is_floating, pat.is_decimal, pat.is_date, pat.is_time),
)
_FRACTION_DIGITS = {"s": 3, "ms": 3, "us": 6, "ns": 9}


@dataclass(frozen=True)
class JsonColumn:
    """The JSON of value i is `begin`, texts[i] and `end`."""

    texts: pl.Series
    begin: str = ""
    end: str = ""

    def join(self) -> pl.Series:
        if not self.begin and not self.end:
            return self.texts
        return _select(pl.concat_str([pl.lit(self.begin), pl.col("x"), pl.lit(self.end)]), x=self.texts)


def json_texts(column: pa.ChunkedArray | pa.Array) -> pl.Series:
    """JSON text of each value. Raises Unsupported TS1715, FixData TS1716."""
    return json_column_of(column).join()


def json_column_of(column: pa.ChunkedArray | pa.Array) -> JsonColumn:
    """The same, with what all values have in common apart. Raises as json_texts."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combine_chunks keeps chunks when text exceeds 2 GiB
        return JsonColumn(pl.concat([json_texts(chunk) for chunk in array.chunks]))
    if pat.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pat.is_nested(array.type):
        return JsonColumn(_nested_texts(array).fill_null("null"))
    found = _atomic_texts(array)
    return JsonColumn(found.join().fill_null("null")) if array.null_count else found


def _atomic_texts(array: pa.Array) -> JsonColumn:
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
        return _quoted(values) if _is_plain(array) else JsonColumn(_string_texts(values))
    if pat.is_floating(kind):
        return JsonColumn(_float_texts(values))
    if pat.is_boolean(kind) or pat.is_integer(kind) or pat.is_decimal(kind):
        return JsonColumn(values.cast(pl.String))
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return _quoted(values.bin.encode("base64"))
    if pat.is_date(kind):
        days = array.cast(pa.date32())
        has_four_digits = _check_years(days.cast(pa.int32()), 1)
        return _quoted(_series(days.cast(pa.string())) if has_four_digits else values.dt.strftime("%F"))
    return _quoted(_without_zeros(values.dt.strftime("%T%.9f")))


def _is_plain(array: pa.Array) -> bool:
    """Whether JSON has the text as it is: no quote, no backslash, no control character."""
    if pat.is_string_view(array.type):
        return False
    _, ends, data = array.buffers()
    if data is None:
        return True
    offsets = np.frombuffer(ends, np.int64 if pat.is_large_string(array.type) else np.int32)
    part = offsets[array.offset : array.offset + len(array) + 1]
    text = np.frombuffer(data, np.uint8)[part[0] : part[-1]] if len(array) else np.empty(0, np.uint8)
    return not ((text < 0x20).any() or (text == ord('"')).any() or (text == ord("\\")).any())


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


def _timestamp_texts(array: pa.Array) -> JsonColumn:
    unit, zone = array.type.unit, array.type.tz
    # a zoned value is UTC inside: taking the zone off leaves the UTC wall clock
    counts = array.cast(pa.int64())
    has_four_digits = _check_years(counts, _PER_DAY[unit])
    values = counts.cast(pa.timestamp(unit))
    if not has_four_digits:
        texts = _without_zeros(_series(values).dt.strftime(f"%F %T%.{_FRACTION_DIGITS[unit]}f"))
    else:
        texts = _series(values.cast(pa.string()))
        texts = texts if unit == "s" else _without_zeros(texts)
    return _quoted(texts, end='Z"' if zone is not None else '"')


def _check_years(counts: pa.Array, per_day: int) -> bool:
    """Whether all years have four digits, as Arrow writes them. Raises FixData TS1716."""
    ends = pc.min_max(counts).as_py()
    if ends["min"] is None:
        return True
    if not (_FIRST_DAY * per_day <= ends["min"] and ends["max"] <= _LAST_DAY * per_day):
        raise FixData(
            "TS1716",
            "a date or timestamp cannot be published",
            why=f"expected years -262142 to 262141, got days {ends['min'] // per_day} to "
            f"{ends['max'] // per_day} since 1970-01-01",
            fix="correct the value; nothing of its snapshot was published",
        )
    first, last = _FIRST_FOUR_DIGITS * per_day, (_LAST_FOUR_DIGITS + 1) * per_day
    return bool(first <= ends["min"] and ends["max"] < last)


def _without_zeros(texts: pl.Series) -> pl.Series:
    """12:00:01.500 -> 12:00:01.5 and 12:00:00.000 -> 12:00:00: a point is always there, so no hour is eaten."""
    return texts.str.strip_chars_end("0").str.strip_chars_end(".")


def _quoted(texts: pl.Series, *, end: str = '"') -> JsonColumn:
    return JsonColumn(texts, '"', end)


def _masked(texts: pl.Series, like: pl.Series) -> pl.Series:
    return _select(pl.when(pl.col("y")).then(pl.col("x")), x=texts, y=like.is_not_null())


def _select(expression: pl.Expr, **columns: pl.Series) -> pl.Series:
    return pl.DataFrame(columns).select(expression).to_series()


def _nested_texts(array: pa.Array) -> pl.Series:
    """Children first, by whole columns; then each parent joins the texts of its children."""
    kind = array.type
    if pat.is_struct(kind):
        named = [(kind.field(i).name, array.field(i)) for i in range(kind.num_fields)]
        texts = object_texts(tuple((name, json_column_of(child)) for name, child in named), len(array))
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


def object_texts(
    members: tuple[tuple[str, JsonColumn], ...], rows: int, around: tuple[str, str] = ("", "")
) -> pl.Series:
    """{"name":text,…} of each row from the texts of its members, between two constants."""
    parts: list[pl.Expr] = []
    columns: dict[str, pl.Series] = {}
    before = around[0] + "{"
    for number, (name, column) in enumerate(members):
        parts += [pl.lit(f"{before}{json_name(name)}:{column.begin}"), pl.col(str(number))]
        columns[str(number)] = column.texts
        before = column.end + ","
    if not members:
        return pl.Series([before + "}" + around[1]] * rows, dtype=pl.String)
    return _select(pl.concat_str([*parts, pl.lit(before[:-1] + "}" + around[1])]), **columns)


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
