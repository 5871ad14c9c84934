"""The bucket of a row as native Spark SQL, so that the shuffle by bucket needs no Python (format.md#buckets).

Steps      fixed-width keys: the BinaryRow's 32-bit words are mixed by BIGINT arithmetic, one nested select per
           step; keys with text: the row's bytes are built by concat and hashed by Spark's own hash(binary)
INVARIANT  equal to format.bucket for every row; results never depend on ANSI mode or the session time zone.
WHY        hash(binary) is Spark's murmur3 with seed 42, equal to Paimon's for lengths that are multiples of 4.
           Each step is its own select because Spark evaluates a column that is used twice only once there.
NO NATIVE  FLOAT and DOUBLE (no SQL gives their bits), TIME, DECIMAL of more than 18 digits, nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tablestore_engine.format.data_type import TIMESTAMP_ROOTS, DataType
from tablestore_engine.sql.scanner import quote_name

_MASK = 0xFFFFFFFF
_SPARK_PRECISION = 6  # Spark's timestamps have no nanoseconds
_INLINE = 7  # texts up to here live in their slot
_NATIVE = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "CHAR", "VARCHAR", "BINARY", "VARBINARY",
)  # fmt: skip
_TEXT = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")
_WIDTHS = {"BOOLEAN": 0xFF, "TINYINT": 0xFF, "SMALLINT": 0xFFFF, "INT": _MASK, "DATE": _MASK}
_DAY_MICROS = 86_400_000_000


def is_native(types: Sequence[DataType]) -> bool:
    """Whether every key type can be hashed by SQL alone."""
    return all(_has_native_form(t) for t in types)


def _has_native_form(type_: DataType) -> bool:
    if type_.root == "DECIMAL":
        return type_.is_compact
    if type_.root in TIMESTAMP_ROOTS:
        return (type_.precision or 0) <= _SPARK_PRECISION
    return type_.root in _NATIVE


def bucket_query(
    relation: str,
    keys: Sequence[tuple[str, DataType]],
    bucket_count: int,
    *,
    bucket: str,
    function: str = "default",
) -> str:
    """`select *, <bucket> as `bucket`` over `relation` (a name or a parenthesized query).

    REQUIRES  is_native(types of keys); `function` is default or mod.
    """
    chain = _Chain(relation)
    if function == "mod":
        value = f"cast({quote_name(keys[0][0])} as bigint)"
        return chain.finish(f"cast(pmod({value}, {bucket_count}L) as int)", bucket)
    hashed = _hash_text(chain, keys) if any(t.root in _TEXT for _, t in keys) else _hash_fixed(chain, keys)
    return chain.finish(f"cast(abs(cast({hashed} as bigint) % {bucket_count}L) as int)", bucket)


@dataclass
class _Chain:
    """Nested selects: each step adds one named value to all columns that came before."""

    sql: str
    count: int = 0

    def step(self, *expressions: str) -> tuple[str, ...]:
        """Add the values of `expressions`; their column names."""
        names = [f"__ts_b{self.count + i}" for i in range(len(expressions))]
        self.count += len(expressions)
        added = ", ".join(f"{e} as {n}" for e, n in zip(expressions, names, strict=True))
        self.sql = f"(select *, {added} from {self.sql})"
        return tuple(names)

    def finish(self, expression: str, name: str) -> str:
        """The whole query; the steps' columns are left out again."""
        if not self.count:
            return f"select *, {expression} as {quote_name(name)} from {self.sql}"
        hidden = ", ".join(f"__ts_b{i}" for i in range(self.count))
        return f"select * except ({hidden}), {expression} as {quote_name(name)} from {self.sql}"


# --- 64-bit values of the slots ---


def _header(keys: Sequence[tuple[str, DataType]]) -> tuple[list[str], int]:
    """The words of header and null bits as BIGINT expressions ('0L' where constant), and their byte width."""
    width = (len(keys) + 63 + 8) // 64 * 8
    bits: list[list[str]] = [[] for _ in range(width // 4)]
    for index, (name, type_) in enumerate(keys):
        if type_.nullable:
            word, bit = divmod(8 + index, 32)
            bits[word].append(f"if({quote_name(name)} is null, {1 << bit}L, 0L)")
    return [" + ".join(terms) if terms else "0L" for terms in bits], width


def _value(name: str, type_: DataType) -> str:
    """A slot value as BIGINT; for timestamps finer than milliseconds: microseconds since 1970."""
    column = quote_name(name)
    if type_.root == "BOOLEAN":
        return f"if({column}, 1L, 0L)"
    if type_.root == "DATE":
        return f"cast(unix_date({column}) as bigint)"
    if type_.root == "DECIMAL":
        shift = "1" + "0" * (type_.scale or 0)
        return f"cast({column} * {shift}BD as bigint)"
    if type_.root in TIMESTAMP_ROOTS:
        micros = f"unix_micros({column})" if type_.root == "TIMESTAMP_LTZ" else _wall_clock_micros(column)
        return f"cast(floor({micros} / 1000BD) as bigint)" if type_.is_compact else micros
    return f"cast({column} as bigint)"


def _wall_clock_micros(column: str) -> str:
    """Micros of a TIMESTAMP_NTZ without going through the session time zone."""
    seconds = f"hour({column}) * 3600L + minute({column}) * 60L"
    return (
        f"(cast(unix_date(cast({column} as date)) as bigint) * {_DAY_MICROS}L + ({seconds}) * 1000000L"
        f" + cast(extract(second from {column}) * 1000000BD as bigint))"
    )


# --- fixed width: words by arithmetic ---


def _hash_fixed(chain: _Chain, keys: Sequence[tuple[str, DataType]]) -> str:
    """The hash of a row whose size is constant, as a signed 32-bit value in a BIGINT column."""
    words, width = _header(keys)
    values = chain.step(*(f"coalesce({_value(n, t)}, 0L)" if t.nullable else _value(n, t) for n, t in keys))
    tail: list[str] = []
    for (_, type_), value in zip(keys, values, strict=True):
        if type_.is_compact:
            words += [f"({value} & {_low_mask(type_)}L)", _high_word(value, type_)]
            continue
        offset = width + 8 * len(keys) + 4 * len(tail)
        (millis,) = chain.step(_floor_millis(value))
        words += [f"(({value} - {millis} * 1000L) * 1000L)", f"{offset}L"]
        tail += [f"({millis} & {_MASK}L)", f"(shiftrightunsigned({millis}, 32) & {_MASK}L)"]
    words += tail
    return _mix_all(chain, words)


def _floor_millis(micros: str) -> str:
    """Milliseconds of microseconds, rounded down also before 1970, in integers only."""
    return f"(({micros} - pmod({micros}, 1000L)) div 1000L)"


def _low_mask(type_: DataType) -> int:
    return _WIDTHS.get(type_.root, _MASK)


def _high_word(value: str, type_: DataType) -> str:
    return "0L" if type_.root in _WIDTHS else f"(shiftrightunsigned({value}, 32) & {_MASK}L)"


def _mix_all(chain: _Chain, words: Sequence[str]) -> str:
    """murmur3 of the words, seed 42; leading constants are folded here."""
    state, constant = "", 42
    for word in words:
        if not state and word.endswith("L") and word[:-1].isdigit():
            constant = _mix_number(constant, int(word[:-1]))
            continue
        (key,) = chain.step(_multiply(word, 0xCC9E2D51))
        (mixed,) = chain.step(f"({_multiply(_rotate(key, 15), 0x1B873593)} ^ {state or f'{constant}L'})")
        (state,) = chain.step(f"(({_rotate(mixed, 13)} * 5L + {0xE6546B64}L) & {_MASK}L)")
    (state,) = chain.step(f"({state or f'{constant}L'} ^ {4 * len(words)}L)")
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        (state,) = chain.step(_multiply(f"({state} ^ shiftrightunsigned({state}, {shift}))", factor))
    (state,) = chain.step(f"({state} ^ shiftrightunsigned({state}, 16))")
    return f"(shiftright(shiftleft({state}, 32), 32))"  # as a signed 32-bit number


def _multiply(word: str, factor: int) -> str:
    """32-bit product of an unsigned word; as signed factors it fits 63 bits, so ANSI mode never complains."""
    signed = factor - (1 << 32) if factor & 0x80000000 else factor
    return f"((shiftright(shiftleft({word}, 32), 32) * {signed}L) & {_MASK}L)"


def _rotate(word: str, bits: int) -> str:
    return f"((shiftleft({word}, {bits}) & {_MASK}L) | shiftrightunsigned({word}, {32 - bits}))"


def _mix_number(state: int, word: int) -> int:
    """One step of murmur on plain numbers."""
    word = (word * 0xCC9E2D51) & _MASK
    word = ((word << 15 | word >> 17) & _MASK) * 0x1B873593 & _MASK
    state ^= word
    return ((state << 13 | state >> 19) & _MASK) * 5 + 0xE6546B64 & _MASK


# --- with text: bytes by concat ---


def _hash_text(chain: _Chain, keys: Sequence[tuple[str, DataType]]) -> str:
    """hash(binary) of the row's bytes; offsets of later texts depend on the lengths of earlier ones."""
    words, width = _header(keys)
    offset = f"{width + 8 * len(keys)}L"
    slots: list[str] = []
    tails: list[str] = []
    for name, type_ in keys:
        if type_.root in _TEXT:
            slot, tail, offset = _text_slot(chain, name, offset)
            slots.append(slot)
            tails.append(tail)
            continue
        value = _value(name, type_)
        (slot_value,) = chain.step(f"coalesce({value}, 0L)" if type_.nullable else value)
        if type_.is_compact:
            word = slot_value if type_.root not in _WIDTHS else f"({slot_value} & {_low_mask(type_)}L)"
            slots.append(_little_endian(chain, word))
            continue
        (millis,) = chain.step(_floor_millis(slot_value))
        nanos = f"(({slot_value} - {millis} * 1000L) * 1000L)"
        slots.append(_little_endian(chain, f"(shiftleft({offset}, 32) | {nanos})"))
        tails.append(_little_endian(chain, millis))
        (offset,) = chain.step(f"{offset} + 8L")
    header = [_little_endian(chain, _wide(words, i)) for i in range(0, len(words), 2)]
    return f"hash(concat({', '.join(header + slots + tails)}))"


def _wide(words: Sequence[str], index: int) -> str:
    if words[index] == words[index + 1] == "0L":
        return "0L"
    return f"(({words[index]}) | shiftleft({words[index + 1]}, 32))"


def _text_slot(chain: _Chain, name: str, offset: str) -> tuple[str, str, str]:
    """(slot bytes, bytes of the variable part, offset behind it) of a text or bytes column."""
    text, length = chain.step(
        f"cast({quote_name(name)} as binary)", f"cast(octet_length({quote_name(name)}) as bigint)"
    )
    marker = _little_endian(chain, f"(shiftleft({offset}, 32) | {length})")
    inline = f"concat(rpad({text}, {_INLINE}, X'00'), substring({_markers()}, cast({length} as int) + 1, 1))"
    (slot, padded) = chain.step(
        f"case when {length} is null then X'{'00' * 8}' when {length} <= {_INLINE} then {inline} else {marker} end",
        f"if({length} > {_INLINE}, ({length} + 7L) div 8L * 8L, 0L)",
    )
    (size,) = chain.step(f"coalesce({padded}, 0L)")
    (tail,) = chain.step(f"if({size} > 0L, rpad({text}, cast({size} as int), X'00'), X'')")
    (after,) = chain.step(f"{offset} + {size}")
    return slot, tail, after


def _markers() -> str:
    return "X'" + "".join(f"{0x80 | n:02x}" for n in range(_INLINE + 1)) + "'"


def _little_endian(chain: _Chain, value: str) -> str:
    """The eight bytes of a BIGINT, least significant first."""
    if value == "0L":
        return f"X'{'00' * 8}'"
    (word,) = chain.step(value)
    swapped = " | ".join(
        f"shiftleft(shiftrightunsigned({word}, {8 * i}) & 255L, {56 - 8 * i})" for i in range(8)
    )
    return f"unhex(lpad(hex({swapped}), 16, '0'))"
