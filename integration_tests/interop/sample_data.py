"""Rows of every type: edge values first, then seeded random ones, with nulls between.

INVARIANT  values survive every reader exactly: floats are float32 values, times have no more digits than their type,
           and no struct consists of nulls alone (golden.py has a table for that).
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from integration_tests.interop.schemas import Type

LTZ = " WITH LOCAL TIME ZONE"
ALL_TYPES: dict[str, Type] = {
    "c_bool": "BOOLEAN",
    "c_tiny": "TINYINT",
    "c_small": "SMALLINT",
    "c_int": "INT",
    "c_big": "BIGINT",
    "c_float": "FLOAT",
    "c_double": "DOUBLE",
    "c_dec9": "DECIMAL(9, 2)",
    "c_dec18": "DECIMAL(18, 4)",
    "c_dec38": "DECIMAL(38, 10)",
    "c_text": "STRING",
    "c_varchar": "VARCHAR(20)",
    "c_char": "CHAR(5)",
    "c_bytes": "BYTES",
    "c_date": "DATE",
    "c_ts0": "TIMESTAMP(0)",
    "c_ts3": "TIMESTAMP(3)",
    "c_ts6": "TIMESTAMP(6)",
    "c_ltz3": "TIMESTAMP(3)" + LTZ,
    "c_ltz6": "TIMESTAMP(6)" + LTZ,
}
NESTED_TYPES: dict[str, Type] = {
    "n_ints": ("ARRAY", "INT"),
    "n_texts": ("ARRAY", "STRING"),
    "n_map": ("MAP", "STRING", "BIGINT"),
    "n_row": ("ROW", (("a", "INT"), ("b", "STRING"), ("d", "DECIMAL(12, 3)"))),
    "n_rows": ("ARRAY", ("ROW", (("x", "BIGINT"), ("y", "STRING")))),
    "n_deep": ("ROW", (("m", ("MAP", "INT", ("ARRAY", "STRING"))), ("t", "TIMESTAMP(6)"))),
}
PARTITION_TYPES: dict[str, Type] = {
    "p_bool": "BOOLEAN",
    "p_tiny": "TINYINT",
    "p_small": "SMALLINT",
    "p_int": "INT",
    "p_big": "BIGINT",
    "p_dec": "DECIMAL(10, 2)",
    "p_dec20": "DECIMAL(20, 4)",
    "p_text": "STRING",
    "p_varchar": "VARCHAR(20)",
    "p_char": "CHAR(5)",
    "p_date": "DATE",
    "p_ts0": "TIMESTAMP(0)",
    "p_ts3": "TIMESTAMP(3)",
    "p_ts6": "TIMESTAMP(6)",
}
_FIRST = dt.datetime(1, 1, 1)  # noqa: DTZ001 - the zone is the column's business
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001
_LAST = dt.datetime(9999, 12, 31, 23, 59, 59)  # noqa: DTZ001
_TEXTS = (
    "",
    "a",
    "é",
    "日本語",
    "🛫 x",
    "line\nbreak",
    "quote\"'",
    "null",
    "longer-than-seven-bytes",
    "100%",
)
_EDGES: dict[str, tuple[Any, ...]] = {
    "BOOLEAN": (True, False),
    "TINYINT": (-128, 127, 0),
    "SMALLINT": (-32768, 32767, -1),
    "INT": (-(2**31), 2**31 - 1, 0),
    "BIGINT": (-(2**63), 2**63 - 1, 0),
    "FLOAT": (
        0.0,
        -0.0,
        float("inf"),
        float("-inf"),
        float("nan"),
        1.5,
        3.4028234663852886e38,
        1.401298464324817e-45,
    ),
    "DOUBLE": (0.0, -0.0, float("inf"), float("-inf"), float("nan"), -2.25, 1.7976931348623157e308, 5e-324),
    "STRING": _TEXTS,
    "VARCHAR": tuple(text[:20] for text in _TEXTS),
    "CHAR": ("abcde", "ab", "é", ""),
    "BYTES": (b"", b"\x00\xff\x10", bytes(range(256))),
    "DATE": (dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1969, 12, 31)),
}


def make_rows(
    columns: Mapping[str, Type], keys: Iterable[int], *, seed: int, required: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """One row per key; `id` is the key, every other column a value of its type, null in one of eight."""
    chance = random.Random(seed)
    needed = {*required}
    rows = []
    for number, key in enumerate(keys):
        row: dict[str, Any] = {"id": key}
        for name, wanted in columns.items():
            if name == "id":
                continue
            null = name not in needed and chance.random() < 0.125
            row[name] = None if null else _value(wanted, chance, number)
        rows.append(row)
    return rows


def _value(wanted: Type, chance: random.Random, number: int) -> Any:
    if isinstance(wanted, tuple):
        return _nested(wanted, chance)
    root = wanted.split("(")[0]
    if root in _EDGES and chance.random() < 0.4:
        edges = _EDGES[root]
        return edges[number % len(edges)]
    if root == "DECIMAL":
        return _decimal(wanted, chance)
    if root == "TIMESTAMP":
        return _timestamp(wanted, chance)
    return _RANDOM[root](chance)


def _decimal(wanted: str, chance: random.Random) -> Decimal:
    precision, scale = (int(part) for part in wanted[8:-1].split(","))
    largest = 10**precision - 1
    unscaled = chance.choice(
        (largest, -largest, 0, -128, chance.randint(-largest, largest), chance.randint(-999, 999))
    )
    return Decimal((int(unscaled < 0), tuple(int(digit) for digit in str(abs(unscaled))), -scale))


def _timestamp(wanted: str, chance: random.Random) -> dt.datetime:
    digits = int(wanted[10])
    value = chance.choice((_FIRST, _EPOCH, _LAST, None, None, None))
    if value is None:
        value = _EPOCH + dt.timedelta(seconds=chance.randint(-3_000_000_000, 3_000_000_000))
    fraction = chance.randint(0, 10**digits - 1) * 10 ** (6 - digits)
    value = value.replace(microsecond=fraction)
    return value.replace(tzinfo=dt.UTC) if wanted.endswith(LTZ) else value


def _nested(wanted: tuple[Any, ...], chance: random.Random) -> Any:
    def child(kind: Type) -> Any:
        return None if chance.random() < 0.2 else _value(kind, chance, chance.randrange(100))

    if wanted[0] == "ARRAY":
        return [child(wanted[1]) for _ in range(chance.choice((0, 1, 3)))]
    if wanted[0] == "MAP":
        keys = {
            repr(key): key for key in (_value(wanted[1], chance, n) for n in range(chance.choice((0, 1, 3))))
        }
        return [(key, child(wanted[2])) for key in keys.values()]
    first, *others = wanted[1]
    return {first[0]: _value(first[1], chance, 0), **{name: child(kind) for name, kind in others}}


def _text(chance: random.Random, longest: int = 30) -> str:
    return "".join(chance.choice("abcXYZ019 _-é日") for _ in range(chance.randint(0, longest)))


def _float(chance: random.Random) -> float:
    return chance.randint(-(2**20), 2**20) / 64


_RANDOM: dict[str, Callable[[random.Random], Any]] = {
    "BOOLEAN": lambda c: c.random() < 0.5,
    "TINYINT": lambda c: c.randint(-128, 127),
    "SMALLINT": lambda c: c.randint(-(2**15), 2**15 - 1),
    "INT": lambda c: c.randint(-(2**31), 2**31 - 1),
    "BIGINT": lambda c: c.randint(-(2**63), 2**63 - 1),
    "FLOAT": _float,
    "DOUBLE": lambda c: c.gauss(0, 1e9),
    "STRING": _text,
    "VARCHAR": lambda c: _text(c, 20),
    "CHAR": lambda c: _text(c, 5),
    "BYTES": lambda c: c.randbytes(c.randint(0, 20)),
    "DATE": lambda c: dt.date(1970, 1, 1) + dt.timedelta(days=c.randint(-40000, 40000)),
    "TIME": lambda c: dt.time(c.randrange(24), c.randrange(60), c.randrange(60), c.randrange(1000) * 1000),
}
