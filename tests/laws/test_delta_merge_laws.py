"""Stored groups with contributions are the new groups, or are evaluated: random groups, counted by hand.

The oracle is the group's rows themselves, before and after. The stored rows are those of before.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.queryplan.delta_root import (
    COUNT,
    DISTINCT,
    GROUP,
    MAX,
    MIN,
    SUM,
    SUM_OR_ZERO,
    GroupColumn,
)
from tablestore_engine.queryplan.plan_nodes import Place
from tablestore_engine.spark import merged_groups
from tablestore_engine.spark.merged_groups import merge_groups
from tablestore_engine.spark.merged_rows import MergedRows, StoredRows, merge_rows

X = Place((), "x", None)
Row = tuple[Any, Any]  # a value that is added up, and one whose extremes are shown
LIMIT = 1 << 63
COLUMNS = {
    "k": GroupColumn(GROUP, (X,)),
    "rows": GroupColumn(COUNT, ()),
    "values": GroupColumn(COUNT, (X,)),
    "different": GroupColumn(DISTINCT, (X,), type="long"),
    "total": GroupColumn(SUM, (X,), type="long"),
    "zeroed": GroupColumn(SUM_OR_ZERO, (X,), type="long"),
    "most": GroupColumn(MAX, (X,)),
    "least": GroupColumn(MIN, (X,)),
}
STORED = pa.schema([
    ("k", pa.int64()), ("rows", pa.int64()), ("values", pa.int64()), ("different", pa.int64()),
    ("total", pa.int64()), ("zeroed", pa.int64()),
    ("most", pa.string()), ("least", pa.bool_()),
])  # fmt: skip


def result(rows: Sequence[Row], names: Sequence[str], *, is_total: bool) -> dict[str, Any] | None:
    """What SQL says of a group; None: there is none."""
    if not rows and not is_total:
        return None
    values = [x for x, _ in rows if x is not None]
    shown = [y for _, y in rows if y is not None]
    found = {
        "rows": len(rows), "values": len(values), "different": len(set(values)),
        "total": sum(values) if values else None, "zeroed": sum(values),
        "most": max(map(str, shown), default=None), "least": min((one > 2 for one in shown), default=None),
    }  # fmt: skip
    return {name: found[name] for name in names if name != "k"}


def contribution(
    before: Sequence[Row], after: Sequence[Row], noise: Sequence[Row], names: Sequence[str]
) -> dict[str, Any]:
    """As delta_query gives it. `noise`: rows that came with both signs."""
    added, removed = Counter(after), Counter(before)
    plus, minus = list((added - removed).elements()), list((removed - added).elements())
    found: dict[str, Any] = {"n": len(plus) - len(minus)}
    signed = [(one, 1) for one in (*plus, *noise)] + [(one, -1) for one in (*minus, *noise)]
    for at, name in enumerate(names):
        values = [(x, sign) for (x, _), sign in signed if x is not None]
        if name == "rows":
            found[f"v{at}"] = found["n"]
        elif name == "values":
            found[f"v{at}"] = sum(sign for _, sign in values)
        elif name == "different":
            net = Counter(x for x, sign in values if sign > 0)
            net.subtract(x for x, sign in values if sign < 0)
            found |= {
                f"v{at}": sum(one > 0 for one in net.values()),
                f"c{at}": sum(one != 0 for one in net.values()),
                f"m{at}": sum(one < 0 for one in net.values()),
            }
        elif name in ("total", "zeroed"):
            part = Decimal(sum(x * sign for x, sign in values)) if values else None
            found |= {f"v{at}": part, f"m{at}": sum(sign for _, sign in values), f"c{at}": len(values)}
        elif name in ("most", "least"):
            choose: Callable[..., Any] = max if name == "most" else min
            show: Callable[[Any], Any] = str if name == "most" else (lambda one: one > 2)
            for letter, rows in (("p", plus), ("q", minus)):
                shown = [show(y) for _, y in rows if y is not None]
                net = Counter(show(y) for _, y in plus if y is not None)
                net.subtract(Counter(show(y) for _, y in minus if y is not None))
                kept = [one for one in shown if (net[one] > 0) == (letter == "p") and net[one]]
                found[f"{letter}{at}"] = choose(kept, default=None)
    return found


def frame(found: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pa.Table:
    """With the types that Spark gives."""
    types = {"n": pa.int64(), "g0": pa.int64()}
    for at, name in enumerate(names):
        kind = {"total": pa.decimal128(38, 0), "zeroed": pa.decimal128(38, 0)}.get(name, pa.int64())
        types |= {f"v{at}": kind, f"m{at}": pa.int64(), f"c{at}": pa.int64()}
        types |= dict.fromkeys((f"p{at}", f"q{at}"), pa.string() if name == "most" else pa.bool_())
    kept = [name for name in types if found and name in found[0]]
    return pa.Table.from_pylist(list(found), pa.schema([(name, types[name]) for name in kept]))


def find_in(rows: pa.Table, key: str) -> Callable[[pa.Table], StoredRows]:
    """Rows of a stored table by their key."""

    def find(keys: pa.Table) -> StoredRows:
        asked = set(keys.column(key).to_pylist())
        mask = [one in asked for one in rows.column(key).to_pylist()]
        return StoredRows(keys, rows.filter(pa.array(mask, pa.bool_())))

    return find


def random_rows(rng: random.Random) -> list[Row]:
    """None at times, large numbers at times."""
    numbers = [None, 0, 1, 2, -2, 5] + ([LIMIT - 1, -LIMIT, LIMIT // 2] if rng.random() < 0.1 else [])
    return [
        (rng.choice(numbers), rng.choice((None, 1, 2, 3, 4))) for _ in range(rng.choice((0, 0, 1, 2, 3, 5)))
    ]


def check(seed: int, groups: int = 60) -> Counter[str]:
    """How many groups were merged, and how many are evaluated."""
    rng = random.Random(seed)
    is_total = rng.random() < 0.15
    names = [
        "k",
        *rng.sample([one for one in COLUMNS if one != "k"], rng.randint(0 if not is_total else 1, 4)),
    ]
    made, expected, stored = [], dict[int, Any](), []
    for number in range(1 if is_total else groups):
        before = random_rows(rng)
        after = [one for one in before if rng.random() < 0.7] + random_rows(rng)
        old, new = (result(rows, names, is_total=is_total) for rows in (before, after))
        if old is not None and not -LIMIT <= (old.get("total") or old.get("zeroed") or 0) < LIMIT:
            continue
        if old is not None:
            stored.append({"k": number, **old})
        noise = random_rows(rng) if rng.random() < 0.2 else []
        if is_total and before == after:
            continue
        made.append({"g0": number, **contribution(before, after, noise, names)})
        expected[number] = (old, new)
    table = pa.Table.from_pylist(stored, pa.schema([STORED.field(one) for one in names]))
    columns = [COLUMNS[one] for one in names]
    merged = (
        merge_groups(frame(made, names), columns, names, ["k"], find_in(table, "k"), is_total=is_total)
        if made
        else None
    )
    return Counter() if merged is None else judge(merged, expected)


def judge(merged: MergedRows, expected: Mapping[int, Any]) -> Counter[str]:
    """Every group that is not evaluated is right."""
    again, counts = set(merged.again.column("k").to_pylist()), Counter[str]()
    rows = {row.pop("k"): row for row in merged.rows.to_pylist()}
    assert not again & rows.keys()
    for number, (old, new) in expected.items():
        if number in again:
            counts["evaluated"] += 1
            continue
        found = rows.get(number)
        if found is None:  # nothing to write
            assert new == old, (number, old, new)
        elif found.pop("_ROW_KIND"):
            assert (new, old is None) == (None, False), (number, old, new, found)
        else:
            assert found == new, (number, old, new, found)
        counts["merged"] += 1
    return counts


def checked(seeds: int) -> Counter[str]:
    """Of so many seeds."""
    return sum(map(check, range(seeds)), Counter())


def test_merged_groups_are_those_of_the_query() -> None:
    """For random groups and columns; most of them need no evaluation."""
    counts = checked(250)
    assert counts["merged"] > 2 * counts["evaluated"] > 0


def _no_removed_check(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **more: replace(found := right(*given, **more), again=np.zeros_like(found.again))


def _null_is_zero(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda group, at, old, **more: right(group, at, merged_groups.pc.fill_null(old, 0), **more)


def _all_stay(right: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(group: Any, columns: Any, merged: Any, **more: Any) -> Any:
        proven = [replace(one, proves=np.ones_like(one.proves)) for one in merged]
        return right(group, [COLUMNS["k"]] * len(columns), proven, **more)

    return wrong


@pytest.mark.parametrize(
    ("function", "plant"),
    [
        ("merge_extreme", _no_removed_check),
        ("_sum", _null_is_zero),
        ("_sum", _no_removed_check),
        ("_distinct", _no_removed_check),
        ("_states", _all_stay),
    ],
)
def test_planted_error_of_merged_groups_is_found(
    function: str, plant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A removed extreme that is kept, a sum of NULL as 0, a sum without its checks, groups that never vanish."""
    monkeypatch.setattr(merged_groups, function, plant(getattr(merged_groups, function)))
    with pytest.raises((AssertionError, pa.ArrowInvalid)):
        checked(250)


def test_sum_of_decimals_fits_its_digits_or_is_evaluated() -> None:
    """DECIMAL(20, 2) of DECIMAL(10, 2), and DECIMAL(38, 2), each at its last number."""
    for digits in (20, 38):
        last, less = (Decimal("9" * (digits - 3) + end) for end in ("9.99", "8.99"))
        columns = [COLUMNS["k"], GroupColumn(SUM, (X,), type="decimal(10,2)")]
        stored = pa.table(
            {"k": [1, 2, 3], "s": pa.array([less, last, Decimal(f"-{last}")], pa.decimal128(digits, 2))}
        )
        parts = pa.array([Decimal("1.00"), Decimal("0.01"), Decimal("-0.01")], pa.decimal128(38, 2))
        found = pa.table({"g0": [1, 2, 3], "n": [1, 1, 1], "v1": parts, "m1": [1, 1, 1], "c1": [1, 1, 1]})
        merged = merge_groups(found, columns, ["k", "s"], ["k"], find_in(stored, "k"), is_total=False)
        assert merged.rows.to_pylist() == [{"k": 1, "s": last, "_ROW_KIND": 0}]
        assert merged.again.to_pylist() == [{"k": 2}, {"k": 3}]


@pytest.mark.parametrize(
    ("key", "value"), [("k", "v"), ("n", "at"), ("at", "n"), ("plus", "minus"), ("k0", "found"), ("r1", "r0")]
)
def test_signed_rows_of_a_key_are_put_deleted_or_evaluated(key: str, value: str) -> None:
    """By their number, and for a first row by what is stored; NULL is no stored key. Columns have any names."""
    found = pa.table({
        "r0": pa.array([1, 1, 2, 3, 4, 5, 5, 6, 6, None], pa.int64()),
        "r1": ["old", "new", "gone", "first", "double", "a", "b", "c", "d", "null"],
        "n": pa.array([-1, 1, -1, 1, 1, 1, 1, 2, -1, 1], pa.int64()),
    })  # fmt: skip
    stored = pa.table({key: [1, 2, 4], value: ["old", "gone", "there"]})
    merged = merge_rows(found, [key, value], [key], find_in(stored, key))
    assert merged.rows.to_pylist() == [
        {key: 1, value: "new", "_ROW_KIND": 0},
        {key: 3, value: "first", "_ROW_KIND": 0},
        {key: 2, value: "gone", "_ROW_KIND": 3},
    ]
    assert merged.again.column(key).to_pylist() == [4, 5, 6, None]
