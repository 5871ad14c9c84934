"""Tables of every type for tests of formats: columns, random rows, messages, a registry that is a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.avro_schema import SchemaIds, avro_schemas
from tablestore_engine.log.decode import LogMessage
from tablestore_engine.log.log_formats import LogFormats
from tablestore_engine.log.message_envelope import EncodedRows

EVERY = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("part", pa.string(), nullable=False),
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("n", pa.int32()),
        ("f", pa.float32()),
        ("g", pa.float64()),
        ("price", pa.decimal128(38, 9)),
        ("coin", pa.decimal128(4, 2)),
        ("day", pa.date32()),
        ("clock", pa.time32("ms")),
        ("milli", pa.timestamp("ms")),
        ("at", pa.timestamp("us")),
        ("nano", pa.timestamp("ns")),
        ("zoned", pa.timestamp("ms", "UTC")),
        ("zoned_nano", pa.timestamp("ns", "UTC")),
        ("name", pa.string()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.int32(), pa.decimal128(5, 1))),
        ("words", pa.map_(pa.string(), pa.list_(pa.int64()))),
        ("inner", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.date32())), ("c", pa.struct([("d", pa.bool_())]))])),
        ("rows", pa.list_(pa.struct([("x", pa.float64()), ("y", pa.binary())]))),
    ]
)  # fmt: skip
KEY = ("k", "part")
_DAYS = st.dates()
_LOW, _HIGH = -62135596800, 253402300799  # years 1 to 9999
_VALUES = {
    "flag": st.booleans(),
    "tiny": st.integers(-(2**7), 2**7 - 1),
    "small": st.integers(-(2**15), 2**15 - 1),
    "n": st.integers(-(2**31), 2**31 - 1),
    "f": st.floats(width=32, allow_nan=False),
    "g": st.floats(allow_nan=False),
    "price": st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -9))
    ),
    "coin": st.integers(-9999, 9999).map(lambda n: Decimal(n).scaleb(-2)),
    "day": _DAYS,
    "clock": st.integers(0, 86_399_999),
    "milli": st.integers(_LOW * 10**3, _HIGH * 10**3),
    "at": st.integers(_LOW * 10**6, _HIGH * 10**6),
    "nano": st.integers(-(2**63) + 1, 2**63 - 1),
    "zoned": st.integers(_LOW * 10**3, _HIGH * 10**3),
    "zoned_nano": st.integers(-(2**62), 2**62),
    "name": st.text(),
    "raw": st.binary(),
    "tags": st.lists(st.none() | st.text(max_size=3), max_size=3),
    "counts": st.dictionaries(
        st.integers(-9, 9), st.none() | st.integers(-9999, 9999).map(lambda n: Decimal(n).scaleb(-1))
    ).map(lambda m: list(m.items())),
    "words": st.dictionaries(
        st.text(max_size=2), st.none() | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=2)
    ).map(lambda m: list(m.items())),
    "inner": st.fixed_dictionaries(
        {
            "a": st.none() | st.integers(-9, 9),
            "b": st.none() | st.lists(_DAYS, max_size=2),
            "c": st.none() | st.fixed_dictionaries({"d": st.none() | st.booleans()}),
        }
    ),
    "rows": st.lists(
        st.none()
        | st.fixed_dictionaries(
            {"x": st.none() | st.floats(allow_nan=False), "y": st.none() | st.binary(max_size=3)}
        ),
        max_size=3,
    ),
}  # fmt: skip


@st.composite
def rows(draw: st.DrawFn, kinds: tuple[int, ...] = (0, 1, 2, 3)) -> pa.Table:
    """Up to six rows of EVERY with `_ROW_KIND`, possibly a slice of a larger table."""
    row = st.fixed_dictionaries(
        {"k": st.integers(-(2**63), 2**63 - 1), "part": st.text(max_size=3)}
        | {name: st.none() | values for name, values in _VALUES.items()}
    )
    raw = draw(st.lists(row, max_size=6))
    said = draw(st.lists(st.sampled_from(kinds), min_size=len(raw), max_size=len(raw)))
    columns = [pa.array([r[f.name] for r in raw], f.type) for f in EVERY]
    table = pa.table(columns, EVERY).append_column("_ROW_KIND", pa.array(said, pa.int8()))
    return table.slice(draw(st.integers(0, len(raw))))


def messages_of(encoded: EncodedRows, *, with_kinds: bool = True) -> list[LogMessage]:
    """As a reader has them; without kinds: as of a producer that writes no headers."""
    keys = encoded.keys or [None] * len(encoded)
    return [
        LogMessage(0, n, key, value, kind=RowKind(kind) if with_kinds else None)
        for n, (key, value, kind) in enumerate(zip(keys, encoded.values, encoded.kinds, strict=True))
    ]


@dataclass
class Numbers:
    """What a registry is to an encoder and a decoder."""

    texts: list[str] = field(default_factory=list)

    def register(self, schema: TableSchema, formats: LogFormats, topic: str = "shop.orders") -> SchemaIds:
        """Numbers of the schemas of a table, equal ones for equal schemas."""
        schemas = avro_schemas(schema, topic, formats)
        return SchemaIds(key=self._number(schemas.key), value=self._number(schemas.value))

    def find(self, number: int) -> str:
        """The text."""
        return self.texts[number - 1]

    def _number(self, text: str | None) -> int:
        if text is None:
            return 0
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1
