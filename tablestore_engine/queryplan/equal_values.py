"""Whether values that are equal in SQL are the same value, by their type.

GROUP BY, DISTINCT and PARTITION BY put equal values into one group. If such values can differ (0.0 and -0.0; 'a' and
'A' under a collation that ignores case), a changed row does not tell which of them the group shows.

INVARIANT  a type that is not listed here is not exact.
"""

from __future__ import annotations

from collections.abc import Mapping

_EXACT = frozenset({
    "byte", "short", "integer", "long", "boolean", "date", "timestamp", "timestamp_ntz", "string", "binary", "void",
})  # fmt: skip
_EXACT_FAMILIES = ("decimal", "interval ", "time(", "char(", "varchar(")  # of one scale, precision or length
_COLLATIONS = "__COLLATIONS"  # Spark's JSON has those of a struct's fields beside their types
_FLOATS = frozenset({"float", "double"})
_CARRIED = _FLOATS | _EXACT - {"void"}


def is_exact(type_: object) -> bool:
    """Equal values of the type, as Catalyst's JSON has it, are the same value."""
    if isinstance(type_, Mapping):
        if type_.get("type") == "array":
            return is_exact(type_.get("elementType"))
        fields = type_.get("fields", ())
        return type_.get("type") == "struct" and all(
            is_exact(one.get("type")) and _COLLATIONS not in (one.get("metadata") or {}) for one in fields
        )
    return (
        isinstance(type_, str)
        and "collate" not in type_
        and (type_ in _EXACT or type_.startswith(_EXACT_FAMILIES))
    )


def is_float(type_: object) -> bool:
    """Spark groups it by a normal form: 0.0 for -0.0, one NaN."""
    return type_ in _FLOATS if isinstance(type_, str) else False


def is_carried(type_: object) -> bool:
    """Values of the type are the same after a way to the driver and back, and are compared there."""
    return isinstance(type_, str) and (type_ in _CARRIED or type_.startswith("decimal"))
