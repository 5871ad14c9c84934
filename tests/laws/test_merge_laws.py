"""Laws of merge-on-write: whatever happens to it, a bucket equals a dict, and its changelog leads there."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tablestore_engine.lsm.compaction_strategy import RUNS_MAX, pick
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.tasks.bucket_task import CompactRuns
from tests.doses import examples
from tests.unit.store.bucket_world import Row, World, make_schema

INSERT, BEFORE, AFTER, DELETE = range(4)
KEY_VALUES = {
    "BIGINT": st.sampled_from([-(2**63), -1, 0, 1, 7, 2**63 - 1]),
    "TINYINT": st.integers(-3, 3),
    "BOOLEAN": st.booleans(),
    "STRING": st.sampled_from(["", "a", "B", "ab", "é", "\U0001f600", "x" * 40]),
    "BYTES": st.sampled_from([b"", b"\0", b"\xff", b"ab"]),
    "DATE": st.sampled_from([dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2026, 11, 21)]),
    "TIMESTAMP(6)": st.sampled_from([dt.datetime(1969, 1, 1), dt.datetime(2026, 1, 1, 0, 0, 0, 1)]),  # noqa: DTZ001
    "TIMESTAMP(3)": st.sampled_from([dt.datetime(1969, 1, 1), dt.datetime(2026, 1, 1, 0, 0, 0, 1000)]),  # noqa: DTZ001
    "DECIMAL(5, 2)": st.sampled_from([Decimal("-1.00"), Decimal("0.00"), Decimal("999.99")]),
    "DECIMAL(30, 4)": st.sampled_from(
        [Decimal("-1.0000"), Decimal("1180591620717411303424.0000"), Decimal("0.0001")]
    ),
    "DOUBLE": st.sampled_from([float("-inf"), -1.5, -0.0, 0.0, float("nan")]),
}
LAW = settings(max_examples=examples(15, 30), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _key(row: Mapping[str, object], keys: Sequence[str]) -> str:
    """A dict key that tells −0.0 from 0.0 and takes all NaN as one."""
    return repr([row[name] for name in keys])


def _text(row: Mapping[str, object]) -> str:
    """A row as text, whatever the order of its columns."""
    return repr(sorted(row.items()))


@st.composite
def _histories(
    draw: st.DrawFn,
) -> tuple[dict[str, str], tuple[str, ...], list[tuple[str, list[tuple[int, Row]]]]]:
    """Key columns of 1–3 types in any order, and steps: upsert, replace, fold or full."""
    types = draw(st.lists(st.sampled_from(sorted(KEY_VALUES)), min_size=1, max_size=3))
    columns = {f"k{i}": text for i, text in enumerate(types)}
    keys = tuple(draw(st.permutations(sorted(columns))))
    row = st.fixed_dictionaries(
        {**{name: KEY_VALUES[text] for name, text in columns.items()}, "v": st.none() | st.integers(0, 3)}
    )
    kind = st.sampled_from([INSERT, AFTER, DELETE])
    batch = st.lists(st.tuples(kind, row), max_size=8, unique_by=lambda one: _key(one[1], keys))
    steps = st.lists(
        st.tuples(st.sampled_from(["upsert", "upsert", "upsert", "replace", "fold", "full"]), batch),
        max_size=10,
    )
    order = draw(st.permutations([*columns, "v"]))
    return {name: columns.get(name, "INT") for name in order}, keys, draw(steps)


def _check(world: World, expected: Mapping[str, Row], keys: Sequence[str]) -> None:
    found = world.rows()
    assert sorted(map(_text, found)) == sorted(map(_text, expected.values()))
    assert len({_key(row, keys) for row in found}) == len(found)


def _replay(
    world: World, change: BucketChange, before: Mapping[str, Row], keys: Sequence[str]
) -> dict[str, Row]:
    """Apply the changelog to the state before; every -U and -D must name the row that is there."""
    rows = dict(before)
    told = world.changelog(change)
    for at, (kind, row) in enumerate(told):
        key = _key(row, keys)
        if kind in (BEFORE, DELETE):
            assert _text(rows.pop(key)) == _text(row)
            assert kind == DELETE or told[at + 1][0] == AFTER
        else:
            assert key not in rows
            rows[key] = row
    assert change.inserted == sum(kind == INSERT for kind, _ in told)
    assert change.updated == sum(kind == AFTER for kind, _ in told)
    assert change.deleted == sum(kind == DELETE for kind, _ in told)
    return rows


@LAW
@given(_histories())
def test_a_bucket_is_a_dict_and_its_changelog_leads_there(history: tuple) -> None:
    """For keys of any types in any order: rows equal the dict, the changelog replays it, folds change nothing."""
    columns, keys, steps = history
    with tempfile.TemporaryDirectory() as folder:
        world, oracle = World(Path(folder), make_schema(columns, keys)), {}
        for what, batch in steps:
            if what in ("fold", "full"):
                numbers = world.numbers()
                world.fold(full=what == "full")
                assert world.numbers() == numbers
            else:
                before = dict(oracle)
                if what == "replace":
                    oracle = {_key(row, keys): row for kind, row in batch if kind != DELETE}
                else:
                    for kind, row in batch:
                        oracle.pop(_key(row, keys), None) if kind == DELETE else oracle.update(
                            {_key(row, keys): row}
                        )
                change = world.upsert(
                    [row for _, row in batch], [kind for kind, _ in batch], replace=what == "replace"
                )
                assert sorted(_replay(world, change, before, keys)) == sorted(oracle)
            _check(world, oracle, keys)


@LAW
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 4), st.none() | st.integers(0, 3), st.booleans()), max_size=6),
        max_size=8,
    )
)
def test_sequence_field_makes_arrival_irrelevant(batches: list[list[tuple[int, int | None, bool]]]) -> None:
    """The stored row of a key is the newest by its sequence field, in whatever order rows come."""
    with tempfile.TemporaryDirectory() as folder:
        schema = make_schema({"id": "INT", "at": "INT", "v": "INT"}, options={"sequence.field": "at"})
        world, newest, count = World(Path(folder), schema), {}, 0
        for batch in batches:
            rows: dict[tuple[int, int | None], Row] = {}
            for key, at, _ in batch:
                count += 1
                rows.setdefault((key, at), {"id": key, "at": at, "v": count})
            world.upsert(list(rows.values()))
            for row in rows.values():
                stored = newest.get(row["id"])
                if stored is None or _rank(row) >= _rank(stored):
                    newest[row["id"]] = row
        _check(world, {str(key): row for key, row in newest.items()}, ("id",))


def _rank(row: Row) -> int:
    at = row["at"]
    return -1 if at is None else int(str(at))


@settings(max_examples=5, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=10, unique=True), min_size=25, max_size=60),
    st.sampled_from(["3", "6", "20"]),
)
def test_levels_never_run_out_on_disk(batches: list[list[int]], levels: str) -> None:
    """Upserting for ever with the folds that pick asks for keeps a free level and few files."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), make_schema({"id": "INT", "v": "INT"}, options={"num-levels": levels}))
        oracle: dict[str, Row] = {}
        for number, keys in enumerate(batches):
            while (unit := pick(world.levels, target_bytes=1 << 20)) is not None:
                world.take(world.run(CompactRuns(world.task_table, world.state, unit)))
            rows: list[Row] = [{"id": key, "v": number} for key in keys]
            world.take(world.run(world.plan(rows)))
            oracle.update({str(row["id"]): row for row in rows})
            assert len(world.state.files) <= RUNS_MAX + 1
        _check(world, oracle, ("id",))


@LAW
@given(st.data())
def test_level_zero_equals_replaying_its_rows(data: st.DataObject) -> None:
    """Files of other writers, rows in any file, taken in: the bucket equals replaying all rows in sequence order."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), make_schema({"id": "INT", "v": "INT"}))
        oracle: dict[str, Row] = {}
        base: list[Row] = [{"id": key, "v": -1} for key in data.draw(st.sets(st.integers(0, 6)))]
        world.upsert(base)
        oracle.update({str(row["id"]): row for row in base})
        before = dict(oracle)
        events = data.draw(
            st.lists(
                st.tuples(st.integers(0, 6), st.sampled_from([INSERT, AFTER, BEFORE, DELETE])),
                min_size=1,
                max_size=12,
            )
        )
        files: dict[int, dict[int, tuple[int, int, Row]]] = {}
        for number, (key, kind) in enumerate(events, start=100):
            row: Row = {"id": key, "v": number}
            files.setdefault(data.draw(st.integers(0, 2)), {})[key] = (number, kind, row)
        stored = sorted((one for file in files.values() for one in file.values()), key=lambda one: one[0])
        for _, kind, row in stored:
            oracle.pop(str(row["id"]), None) if kind in (BEFORE, DELETE) else oracle.update(
                {str(row["id"]): row}
            )
        for file in files.values():
            world.add_level_zero([file[key] for key in sorted(file)])
        change = world.compact_level_zero()
        assert {meta.level for meta in change.removed} == {0}
        assert all(file.meta.level > 0 for file in world.state.files)
        _check(world, oracle, ("id",))
        assert sorted(
            _replay(world, change, {_key(row, ("id",)): row for row in before.values()}, ("id",))
        ) == sorted(_key(row, ("id",)) for row in oracle.values())
