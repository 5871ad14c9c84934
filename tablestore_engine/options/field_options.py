"""Options of single columns, `fields.<column>.<name>`: which there are, and what a table says of each column.

CHANGE     the options of a column (options fields.<column>.ignore-retract, fields.<column>.distinct,
           fields.<column>.list-agg-delimiter, fields.<column>.nested-key, fields.<column>.count-limit,
           fields.<column>.ts-field)
INVARIANT  a key names its columns by the text between `fields.` and the last name; only sequence groups name several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

AGGREGATE_FUNCTIONS = (
    *(
        "sum",
        "product",
        "max",
        "min",
        "last_value",
        "last_non_null_value",
        "first_value",
        "first_non_null_value",
    ),
    *(
        "listagg",
        "bool_and",
        "bool_or",
        "collect",
        "merge_map",
        "merge_map_with_keytime",
        "nested_update",
        "rbm32",
    ),
)
DEFAULT_FUNCTION = "fields.default-aggregate-function"
_OF_COLUMN = re.compile(r"fields\.(?P<columns>.+)\.(?P<name>[a-z-]+)")


@dataclass(frozen=True)
class FieldKey:
    """`fields.a,b.sequence-group` as ("a", "b"), "sequence-group"."""

    columns: tuple[str, ...]
    name: str


def parse_field_key(key: str) -> FieldKey | None:
    """None for the key of another option."""
    found = _OF_COLUMN.fullmatch(key)
    if found is None:
        return None
    columns = tuple(part.strip() for part in found["columns"].split(","))
    return FieldKey(columns, found["name"])


@dataclass(frozen=True)
class FieldOptions:
    """What the options of a table say of its columns."""

    values: Mapping[str, str]

    def function(self, column: str) -> str | None:
        """The aggregate function, else the default one, else None."""
        return self._of(column, "aggregate-function") or self.values.get(DEFAULT_FUNCTION)

    def ignores_retract(self, column: str) -> bool:
        """Whether retractions leave the column alone."""
        return self._is_true(column, "ignore-retract")

    def is_distinct(self, column: str) -> bool:
        """Of listagg and collect: equal parts count once."""
        return self._is_true(column, "distinct")

    def delimiter(self, column: str) -> str:
        found = self._of(column, "list-agg-delimiter")
        return "," if found is None else found

    def nested_key(self, column: str) -> tuple[str, ...]:
        """Of nested_update; () without."""
        return tuple(one.strip() for one in (self._of(column, "nested-key") or "").split(",") if one.strip())

    def count_limit(self, column: str) -> int | None:
        found = self._of(column, "count-limit")
        return None if found is None else int(found)

    def time_field(self, column: str) -> str:
        """Of merge_map_with_keytime; empty: the last column of the row."""
        return (self._of(column, "ts-field") or "").strip()

    def keys(self, name: str) -> Mapping[str, FieldKey]:
        """The keys that set this option for some columns."""
        found = {key: parsed for key in self.values if (parsed := parse_field_key(key)) is not None}
        return {key: parsed for key, parsed in found.items() if parsed.name == name}

    def _of(self, column: str, name: str) -> str | None:
        return self.values.get(f"fields.{column}.{name}")

    def _is_true(self, column: str, name: str) -> bool:
        return (self._of(column, name) or "false").strip().lower() == "true"
