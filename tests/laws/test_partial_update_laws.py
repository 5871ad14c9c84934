"""partial-update against one that takes row after row in plain Python: groups, aggregates, retractions, removals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixData
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.lsm.key_order import order_frame
from tablestore_engine.lsm.key_versions import retracts, sort_versions
from tablestore_engine.lsm.merge_records import merged_rows
from tablestore_engine.lsm.partial_update import make_partial_update
from tablestore_engine.lsm.sequence_field import SequenceOrder
from tests.doses import examples
from tests.unit.store.bucket_world import make_schema

COLUMNS = {
    "id": "INT",
    "g": "INT",
    "a": "STRING",
    "s": "INT",
    "h1": "INT",
    "h2": "INT",
    "c": "STRING",
    "free": "STRING",
}
Version = tuple[int, int, dict[str, Any]]  # key, kind, values
GROUPS = {"fields.g.sequence-group": "a,s", "fields.h1,h2.sequence-group": "c"}
SUMS = {**GROUPS, "fields.s.aggregate-function": "sum", "fields.a.aggregate-function": "listagg"}
LAST = {
    **GROUPS,
    "fields.a.aggregate-function": "last_non_null_value",
    "fields.c.aggregate-function": "last_value",
}
FIRST = {**GROUPS, "fields.a.aggregate-function": "first_value", "fields.s.aggregate-function": "max"}
CASES: dict[str, tuple[Mapping[str, str], Sequence[int]]] = {
    "plain": ({}, (0, 2)),
    "removing": ({"partial-update.remove-record-on-delete": "true"}, (0, 1, 2, 3)),
    "groups": (GROUPS, (0, 1, 2, 3)),
    "groups removing": ({**GROUPS, "partial-update.remove-record-on-sequence-group": "g"}, (0, 0, 1, 3)),
    "pair removing": ({**GROUPS, "partial-update.remove-record-on-sequence-group": "h2"}, (0, 0, 1, 3)),
    "sums": (SUMS, (0, 2)),
    "last": (LAST, (0, 0, 1, 3)),
    "first": (FIRST, (0, 2)),
}
VALUES = st.fixed_dictionaries(
    {
        "g": st.one_of(st.none(), st.integers(0, 3)),
        "a": st.one_of(st.none(), st.sampled_from("abc")),
        "s": st.one_of(st.none(), st.integers(0, 9)),
        "h1": st.one_of(st.none(), st.integers(0, 2)),
        "h2": st.one_of(st.none(), st.integers(0, 2)),
        "c": st.one_of(st.none(), st.sampled_from("xyz")),
        "free": st.one_of(st.none(), st.sampled_from("mno")),
    }
)


class Reference:
    """One row at a time, as the options say it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options
        named = {key[7:-15]: text for key, text in options.items() if key.endswith(".sequence-group")}
        self.groups = [(tuple(key.split(",")), tuple(text.split(","))) for key, text in named.items()]
        self.removing = options.get("partial-update.remove-record-on-sequence-group")

    def merge(self, versions: Sequence[tuple[int, dict[str, Any]]]) -> tuple[bool, dict[str, Any]]:
        """Whether the key is gone, and its row."""
        row: dict[str, Any] = dict.fromkeys(COLUMNS)
        gone, was_added, filled = False, False, False
        self.started: set[str] = set()
        for kind, values in versions:
            gone = False
            if kind in (1, 3):
                if not filled:
                    row, filled = {**row, **values}, True
                if self.groups:
                    row, gone = self._retract(row, kind, values)
                elif kind == 3:
                    row, gone = {**row, **values}, True
                continue
            row, was_added, filled = self._add(row, values), True, True
        return gone or not was_added, row

    def _add(self, row: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
        made, grouped = dict(row), set()
        for fields, columns in self.groups:
            grouped |= {*fields, *columns}
            if all(values[name] is None for name in fields):
                continue
            newer = _order(values, fields) >= _order(row, fields)
            if newer:
                made |= {name: values[name] for name in fields}
            for name in columns:
                function = self.options.get(f"fields.{name}.aggregate-function")
                if function is not None:
                    made[name] = self._function(function, name, row[name], values[name], newer=newer)
                elif newer:
                    made[name] = values[name]
        made |= {n: v for n, v in values.items() if n not in grouped and v is not None}
        return made

    def _function(self, function: str, name: str, old: Any, new: Any, *, newer: bool) -> Any:
        first, second = (old, new) if newer else (new, old)
        if function == "last_value":
            return second
        if function == "first_value":
            if name not in self.started:
                self.started.add(name)
                return second
            return first
        if first is None or second is None:
            return second if first is None else first
        if function == "last_non_null_value":
            return second
        if function == "max":
            return max(first, second)
        return first + second if function == "sum" else f"{first},{second}"

    def _retract(self, row: dict[str, Any], kind: int, values: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        made = dict(row)
        for fields, columns in self.groups:
            if all(values[name] is None for name in fields):
                continue
            newer = _order(values, fields) >= _order(row, fields)
            if newer and kind == 3 and self.removing in fields:
                return {**row, **values}, True
            if newer:
                made |= {name: values[name] for name in fields}
            for name in columns:
                function = self.options.get(f"fields.{name}.aggregate-function")
                if function == "last_non_null_value":
                    made[name] = row[name] if values[name] is None else None
                elif function is not None or newer:
                    made[name] = None
        return made, False


def _order(row: dict[str, Any], fields: Sequence[str]) -> list[tuple[bool, Any]]:
    return [(row[name] is not None, row[name] or 0) for name in fields]


@settings(deadline=None, max_examples=examples(100, 400))
@given(st.sampled_from(sorted(CASES)), st.data())
def test_rows_are_those_of_plain_python(name: str, data: st.DataObject) -> None:
    """Versions of a few keys in any order, values NULL as often as not."""
    options, kinds = CASES[name]
    version = st.tuples(st.integers(0, 3), st.sampled_from(kinds), VALUES)
    versions = data.draw(st.lists(version, max_size=12))
    expected = {}
    for key in sorted({one[0] for one in versions}):
        mine = [(kind, values) for k, kind, values in versions if k == key]
        if len(mine) > 1:
            gone, row = Reference(options).merge(mine)
            expected[key] = (gone, None if gone else {**row, "id": key})
    found = {key: one for key, one in _merged(options, versions).items() if key in expected}
    assert found == expected


def test_a_retraction_needs_an_option() -> None:
    """Without groups and options -D is refused where it meets another version."""
    values = dict.fromkeys([name for name in COLUMNS if name != "id"])
    with pytest.raises(FixData, match="TS1668"):
        _merged({}, [(1, 0, values), (1, 3, values)])


def _merged(options: Mapping[str, str], versions: Sequence[Version]) -> dict[int, tuple[bool, Any]]:
    schema = make_schema(COLUMNS, options={"merge-engine": "partial-update", **options})
    rows = pa.Table.from_pylist([{"id": key, **values} for key, _, values in versions], schema.arrow_schema())
    kinds = np.array([kind for _, kind, _ in versions], dtype=np.int8)
    arrival = SequenceOrder.of(order_frame([pa.array(range(len(versions)), pa.int64())]), descending=False)
    ordered = sort_versions(
        order_frame([rows.column("id")]), retracts(kinds), arrival, rows, kinds == RowKind.UPDATE_BEFORE
    )
    merged = make_partial_update(schema).merge(ordered)
    made = merged_rows(rows, merged).to_pylist()
    return {
        row["id"]: (away, None if away else row)
        for row, away in zip(made, merged.deletes.tolist(), strict=True)
    }
