"""Random types and values of the format, for the laws in this directory."""

# ruff: noqa: DTZ001 — values of TIMESTAMP have no zone
from __future__ import annotations

import datetime as dt
from decimal import Decimal

from hypothesis import strategies as st

from tablestore_engine.format.data_type import BYTES, STRING, DataField, DataType

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_LENGTHS = st.integers(1, 2147483647)


def _decimals() -> st.SearchStrategy[DataType]:
    return st.integers(1, 38).flatmap(
        lambda p: st.integers(0, p).map(lambda s: DataType("DECIMAL", precision=p, scale=s))
    )


def atomic_types(max_precision: int = 9) -> st.SearchStrategy[DataType]:
    """Any scalar type; times up to `max_precision` digits."""
    plain = st.sampled_from(["BOOLEAN", *_BITS, "FLOAT", "DOUBLE", "DATE"]).map(DataType)
    timed = st.builds(
        lambda root, p: DataType(root, precision=p),
        st.sampled_from(["TIME", "TIMESTAMP", "TIMESTAMP_LTZ"]),
        st.integers(0, max_precision),
    )
    sized = st.builds(
        lambda root, n: DataType(root, length=n),
        st.sampled_from(["CHAR", "VARCHAR", "BINARY", "VARBINARY"]),
        _LENGTHS,
    )
    return st.one_of(plain, timed, sized, _decimals(), st.sampled_from([STRING, BYTES]))


def data_types() -> st.SearchStrategy[DataType]:
    """Any type with any nullability; ROW children have distinct names and ids."""

    def nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        rows = st.lists(
            st.tuples(st.sampled_from("abcdef"), inner), min_size=1, max_size=4, unique_by=lambda c: c[0]
        )
        return st.one_of(
            inner.map(lambda t: DataType("ARRAY", element=t)),
            inner.map(lambda t: DataType("MULTISET", element=t)),
            st.tuples(inner, inner).map(
                lambda kv: DataType("MAP", key=kv[0].with_nullable(False), value=kv[1])
            ),
            rows.map(
                lambda cs: DataType("ROW", fields=tuple(DataField(i, n, t) for i, (n, t) in enumerate(cs)))
            ),
        )

    either = atomic_types() | st.sampled_from([DataType("VARIANT"), DataType("BLOB")])
    flagged = st.tuples(either, st.booleans()).map(lambda pair: pair[0].with_nullable(pair[1]))
    return st.recursive(flagged, nested, max_leaves=6)


def values_of(type_: DataType) -> st.SearchStrategy[object]:
    """None or a value that the type keeps exactly."""
    return st.none() | known_values_of(type_)


def known_values_of(type_: DataType) -> st.SearchStrategy[object]:
    """A value that the type keeps exactly."""
    root = type_.root
    if root in _BITS:
        half = 1 << (_BITS[root] - 1)
        return st.integers(-half, half - 1) | st.sampled_from([-half, -1, 0, 1, half - 1])
    if root == "DECIMAL":
        top, scale = 10 ** (type_.precision or 0) - 1, type_.scale or 0
        boundaries = [s * 2 ** (8 * k - 1) + d for k in range(1, 17) for s in (1, -1) for d in (-1, 0, 1)]
        near = st.sampled_from(
            [b for b in boundaries if abs(b) <= top] or [0]
        )  # where the byte length changes
        return (st.integers(-top, top) | near).map(lambda n: _scaled(n, scale))
    if root in ("FLOAT", "DOUBLE"):
        return st.floats(width=32 if root == "FLOAT" else 64, allow_nan=False)
    return _other_values(type_)


def _scaled(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _other_values(type_: DataType) -> st.SearchStrategy[object]:
    root = type_.root
    if root == "BOOLEAN":
        return st.booleans()
    if root in ("CHAR", "VARCHAR"):
        return st.text(st.characters(codec="utf-8"), max_size=30)
    if root in ("BINARY", "VARBINARY"):
        return st.binary(max_size=30)
    if root == "DATE":
        return st.dates()
    if root == "TIME":
        return st.integers(0, 86_399_999).map(
            lambda ms: (dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=ms)).time()
        )
    zone = dt.UTC if root == "TIMESTAMP_LTZ" else None
    millis_only = (type_.precision or 0) <= 3
    return st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)).map(
        lambda t: t.replace(
            tzinfo=zone, microsecond=t.microsecond // 1000 * 1000 if millis_only else t.microsecond
        )
    )


@st.composite
def typed_rows(
    draw: st.DrawFn, *, max_columns: int = 4, max_rows: int = 12
) -> tuple[list[DataType], list[tuple[object, ...]]]:
    """Types, and rows of values of these types."""
    types = draw(st.lists(atomic_types(max_precision=6), min_size=1, max_size=max_columns))
    rows = draw(st.lists(st.tuples(*(values_of(t) for t in types)), max_size=max_rows))
    return types, rows
