"""State of groups with contributions is the state of the new groups, or the group is evaluated: random groups.

The oracle is the group's rows themselves, before and after. Contributions are as test_delta_merge_laws makes them.
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
import pyarrow.compute as pc
import pytest

from tablestore_engine.format.group_state_file import (
    GROWS,
    GroupState,
    UnusableState,
    decode_group_state,
    encode_group_state,
    group_state_header,
)
from tablestore_engine.queryplan.delta_root import COUNT, GROUP, MAX, MIN, SUM, GroupColumn
from tablestore_engine.spark import merged_state
from tablestore_engine.spark.merged_state import ChangedState, merge_state
from tests.laws.test_delta_merge_laws import LIMIT, Row, X, contribution, frame, random_rows

SLOTS = {
    "k": GroupColumn(GROUP, (X,)),
    "rows": GroupColumn(COUNT, ()),
    "values": GroupColumn(COUNT, (X,)),
    "total": GroupColumn(SUM, (X,), type="long"),
    "most": GroupColumn(MAX, (X,)),
    "least": GroupColumn(MIN, (X,)),
}
TYPES = {"most": pa.string(), "least": pa.bool_(), "total": pa.decimal128(38, 0)}


def state_of(key: int | None, rows: Sequence[Row], names: Sequence[str]) -> dict[str, Any] | None:
    """What is kept of a group; None: nothing."""
    if not rows and "k" in names:
        return None
    values, shown = [x for x, _ in rows if x is not None], [y for _, y in rows if y is not None]
    found = {
        "rows": len(rows), "values": len(values), "total": Decimal(sum(values)),
        "most": max(map(str, shown), default=None), "least": min((one > 2 for one in shown), default=None),
    }  # fmt: skip
    made: dict[str, Any] = {"n": len(rows)}
    for at, name in enumerate(names):
        if name == "k":
            made["g0"] = key
        else:
            made[f"v{at}"] = found[name]
            made |= {f"m{at}": len(values)} if name == "total" else {}
    return made


def as_table(states: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pa.Table:
    """With the types that Spark gives."""
    fields = [("n", pa.int64())]
    for at, name in enumerate(names):
        fields.append((f"{'g' if name == 'k' else 'v'}{at}", TYPES.get(name, pa.int64())))
        fields += [(f"m{at}", pa.int64())] if name == "total" else []
    return pa.Table.from_pylist(list(states), pa.schema(fields))


def check(seed: int, groups: int = 60) -> Counter[str]:
    """How many groups were merged, and how many are evaluated; the file gives back each state."""
    rng = random.Random(seed)
    is_total = rng.random() < 0.15
    others = rng.sample([one for one in SLOTS if one != "k"], rng.randint(1, 4))
    names = others if is_total else ["k", *others]
    found, before, after = [], [], dict[int | None, Any]()
    untouched = state_of(-1, [(1, 2)], names)
    for key in [0] if is_total else [None, *range(groups)]:
        old = random_rows(rng)
        new = [one for one in old if rng.random() < 0.7] + random_rows(rng)
        before.append(state_of(key, old, names))
        noise = random_rows(rng) if rng.random() < 0.2 else []
        part = contribution(old, new, noise, names)
        found.append(part if is_total else {"g0": key, **part})
        after[key] = state_of(key, new, names)
    stored = [one for one in before if one is not None] + ([] if is_total else [untouched])
    state = as_table(stored, names)  # type: ignore[arg-type]
    header = group_state_header("columns", "query", {"a": str(seed)})
    assert decode_group_state(encode_group_state(state, header), header) == state
    old = as_table([state_of(key, [(5, 1)], names) for key in after], names)  # type: ignore[misc]
    changed = merge_state(
        frame(found, names), [SLOTS[one] for one in names], in_parts(rng, state, old), is_total=is_total
    )
    counts = judge(changed, after, names, is_total=is_total)
    again = [0] * changed.again.num_rows if is_total else changed.again.column("g0").to_pylist()
    fresh = as_table([one for key in again if (one := after[key]) is not None], names)
    kept = [one for one in (*after.values(), None if is_total else untouched) if one is not None]
    whole = changed.with_evaluated(fresh)[1].whole()
    assert sorted_rows(whole) == sorted_rows(as_table(kept, names))
    return counts


def sorted_rows(state: pa.Table) -> list[str]:
    """In any order."""
    return sorted(map(str, state.to_pylist()))


def in_parts(rng: random.Random, state: pa.Table, old: pa.Table) -> GroupState:
    """The same state, with parts before it. `old`: other rows of its groups, and of groups that have none any more."""
    made = GroupState(state)
    if not made.key:
        return made
    made = GroupState(old.take(rng.sample(range(old.num_rows), old.num_rows // 2)))
    keys = old.select(made.key).take(rng.sample(range(old.num_rows), old.num_rows // 2))
    made = made.changed(keys, old.take(rng.sample(range(old.num_rows), old.num_rows // 3)))
    every = pa.concat_tables([old.select(made.key), state.select(made.key)])
    return made.changed(every, state)


def judge(
    changed: ChangedState, after: Mapping[int | None, Any], names: Sequence[str], *, is_total: bool
) -> Counter[str]:
    """Every group that is not evaluated has its state, or none."""
    again = [0] * changed.again.num_rows if is_total else changed.again.column("g0").to_pylist()
    rows = {row.get("g0", 0): row for row in changed.rows.to_pylist()}
    counts = Counter[str]()
    for key, wanted in after.items():
        if key in again:
            assert key not in rows
            counts["evaluated"] += 1
        else:
            expected = None if wanted is None else as_table([wanted], names).to_pylist()[0]
            assert rows.get(key) == expected, (key, expected, rows.get(key))
            counts["merged"] += 1
    return counts


def checked(seeds: int) -> Counter[str]:
    """Of so many seeds."""
    return sum(map(check, range(seeds)), Counter())


def test_merged_state_is_that_of_the_new_groups() -> None:
    """For random groups and slots, NULL keys too; only removed extremes need an evaluation."""
    counts = checked(200)
    assert counts["merged"] > 4 * counts["evaluated"] > 0


def _kept_extreme(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **more: replace(found := right(*given, **more), again=np.zeros_like(found.again))


def _lost_sign(right: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(group: Any, at: int, old: Any) -> Any:
        part = group.found.column(f"v{at}")
        at_part = group.found.column_names.index(f"v{at}")
        found = group.found.set_column(at_part, f"v{at}", pc.abs(part).cast(part.type))
        return right(replace(group, found=found), at, old)

    return wrong


def _null_is_zero(right: Callable[..., Any]) -> Callable[..., Any]:
    """Numbers that are NULL count as values."""

    def wrong(group: Any, at: int, old: Any) -> Any:
        at_count = group.found.column_names.index(f"m{at}")
        return right(
            replace(group, found=group.found.set_column(at_count, f"m{at}", group.found.column("n"))), at, old
        )

    return wrong


def _never_vanish(right: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(found: Any, slots: Any, state: Any, *, is_total: bool) -> Any:
        changed = right(found, slots, state, is_total=is_total)
        old = state.rows.take(state.positions(changed.keys).drop_null())
        gone = (
            old.filter(pc.invert(pc.is_in(old.column("g0"), changed.rows.column("g0"))))
            if not is_total
            else None
        )
        return changed if gone is None else replace(changed, rows=pa.concat_tables([changed.rows, gone]))

    return wrong


@pytest.mark.parametrize(
    ("function", "plant"),
    [
        ("merge_extreme", _kept_extreme),
        ("_sum", _lost_sign),
        ("_sum", _null_is_zero),
        ("merge_state", _never_vanish),
    ],
)
def test_planted_error_of_merged_state_is_found(
    function: str, plant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A removed extreme that is kept, a sign that is lost, NULL as a value, groups that never vanish."""
    wrong = plant(getattr(merged_state, function))
    monkeypatch.setattr(merged_state, function, wrong)
    if function == "merge_state":
        monkeypatch.setitem(globals(), function, wrong)
    with pytest.raises(AssertionError):
        checked(100)


def test_sum_without_room_is_not_known() -> None:
    """38 digits at their end: the group is evaluated, and a sum that is not known stays so."""
    slots = [SLOTS["k"], SLOTS["total"]]
    last, less = Decimal("9" * 38), Decimal("9" * 37 + "8")
    state = pa.table({
        "g0": [1, 2, 3], "n": [1, 1, 1], "v1": pa.array([last, None, less], pa.decimal128(38, 0)), "m1": [1, 1, 1],
    })  # fmt: skip
    one = pa.array([Decimal(1)] * 3, pa.decimal128(38, 0))
    found = pa.table({"g0": [1, 2, 3], "n": [1, 1, 1], "v1": one, "m1": [1, 1, 1], "c1": [1, 1, 1]})
    changed = merge_state(found, slots, GroupState(state), is_total=False)
    assert changed.again.to_pylist() == [{"g0": 1}, {"g0": 2}]
    assert changed.rows.to_pylist() == [{"g0": 3, "n": 2, "v1": last, "m1": 2}]


@pytest.mark.parametrize("groups", [1, 40, 3_000])
def test_parts_are_few_and_give_the_state_of_all_runs(groups: int) -> None:
    """Random runs change, add and remove groups: parts that are written and read again have the rows of one table, a
    part has more than GROWS times the rows of the next one, and a row is written few times.
    """
    rng, names, wanted = random.Random(groups), ["k", "total"], dict[int, Any]()
    files, written, changed = dict[str, pa.Table](), 0, 0
    state = GroupState(as_table([], names))
    for run in range(60):
        keys = rng.sample(range(groups), max(1, round(groups * rng.choice([1, 0.01, 0.01, 0.001]))))
        rows = {key: state_of(key, [(run, 1)], names) for key in keys if rng.random() < 0.8}
        wanted = {key: row for key, row in wanted.items() if key not in keys} | rows
        state = state.changed(pa.table({"g0": keys}), as_table(list(rows.values()), names))  # type: ignore[arg-type]
        assert state.count() == len(wanted)
        stay, part = state.unwritten()
        files[f"part {run}"] = part
        sizes = (*stay, (f"part {run}", part.num_rows))
        assert all(one[1] > GROWS * other[1] for one, other in zip(stay, sizes[1:], strict=True))
        state = GroupState(pa.concat_tables([files[name] for name, _ in sizes]), sizes)
        assert sorted_rows(state.whole()) == sorted_rows(as_table(list(wanted.values()), names))
        assert state.count() == state.whole().num_rows
        written, changed = written + part.num_rows, changed + len(keys)
    assert written < 8 * changed


@pytest.mark.parametrize("other", ["version", "columns", "query", "inputs"])
def test_state_of_another_header_is_refused(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another form, of other columns or another query, or of another snapshot of the inputs; a torn file, too."""
    state = as_table([state_of(1, [(LIMIT, 2)], ["k", "total"])], ["k", "total"])  # type: ignore[list-item]
    header = group_state_header("columns", "query", {"table": "5"})
    data = encode_group_state(state, header)
    given = {"columns": "columns", "query": "query", "inputs": {"table": "5"}}
    changed = {"columns": "more", "query": "other", "inputs": {"table": "6"}}
    if other == "version":
        monkeypatch.setattr("tablestore_engine.format.group_state_file.VERSION", 3)
    else:
        given[other] = changed[other]
    with pytest.raises(UnusableState, match=other):
        decode_group_state(data, group_state_header(given["columns"], given["query"], given["inputs"]))  # type: ignore[arg-type]
    with pytest.raises(UnusableState, match="damaged"):
        decode_group_state(data[:-20], header)
