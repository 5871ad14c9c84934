"""Laws of the merge seam: one engine, four callers (a batch, level 0, a fold, merge-on-read), one dict that agrees.

An engine is told to the oracle as a function of two versions; the engine itself works on whole columns. Engines that
only tests know go through the same callers by a line of the registry: nothing else of the code knows them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixData, Unsupported
from tablestore_engine.lsm.key_order import order_frame
from tablestore_engine.lsm.key_versions import sort_versions
from tablestore_engine.lsm.merge import merge_versions
from tablestore_engine.lsm.merge_engine import MergeEngine
from tablestore_engine.lsm.merge_engine_registry import ENGINES, Deduplicate, get_engine
from tablestore_engine.lsm.merge_records import merged_rows
from tablestore_engine.lsm.sequence_field import SequenceOrder
from tablestore_engine.store.merge.hidden_positions import merged_positions
from tablestore_engine.store.merge.version_merge import read_merged
from tests.doses import examples
from tests.unit.lsm.toy_engines import KeepFirst, SumOf, registered
from tests.unit.store.bucket_world import Row, World, make_schema

INSERT, BEFORE, AFTER, DELETE = range(4)
LAW = settings(max_examples=examples(15, 25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
COLUMNS = {"id": "INT", "v": "BIGINT", "at": "INT"}

Version = tuple[int, bool, int, int]  # key, whether it adds, value, sequence field
Fold = Callable[[Version, Version], Version]


def _keep_first(old: Version, new: Version) -> Version:
    """The older one if it adds; two retractions: the older one."""
    return new if new[1] and not old[1] else old


def _sum(old: Version, new: Version) -> Version:
    """The newer one with both values; a retraction only if both are."""
    signed = [one[2] if one[1] else -one[2] for one in (old, new)]
    adds = old[1] or new[1]
    return (new[0], adds, sum(signed) if adds else -sum(signed), new[3])


TOYS: dict[str, tuple[MergeEngine, Fold]] = {
    "keep-first": (KeepFirst(), _keep_first),
    "sum": (SumOf(), _sum),
    # the short way that newest_wins allows is the same as merging pair by pair
    "deduplicate-in-pairs": (Deduplicate(newest_wins=False), lambda _old, new: new),
}
ORACLES: dict[str, Fold] = {
    "deduplicate": lambda _old, new: new,
    "first-row": _keep_first,
    "partial-update": lambda _old, new: new,  # of values that are not NULL
    "aggregation": lambda old, new: (new[0], True, old[2] + new[2], new[3]),
    **{name: fold for name, (_, fold) in TOYS.items()},
}
WHOLE_ROWS = ["deduplicate", "deduplicate-in-pairs", "keep-first"]  # and with retractions
ADDS_ONLY = [
    "first-row",
    "aggregation",
    "partial-update",
]  # retractions: test_aggregate_laws, test_partial_update_laws
NO_VECTORS = ["first-row"]
OPTIONS = {"aggregation": {"fields.v.aggregate-function": "sum"}}


@pytest.fixture(autouse=True)
def _toys() -> Iterator[None]:
    with ExitStack() as lines:
        for name, (engine, _) in TOYS.items():
            lines.enter_context(registered(name, engine))
        yield


VERSIONS = st.lists(
    st.tuples(st.integers(0, 5), st.booleans(), st.integers(-3, 9), st.integers(0, 3)), max_size=14
)
COMMITS = st.lists(VERSIONS, max_size=5)


def _world(folder: str, engine: str, **more: str) -> World:
    named = {key.replace("_", "."): value for key, value in more.items()}
    named |= OPTIONS.get(engine, {})
    if engine in NO_VECTORS:
        named["deletion-vectors.enabled"] = "false"
    return World(Path(folder), make_schema(COLUMNS, options={"merge-engine": engine, **named}))


def _taken(engine: str, versions: Sequence[Version]) -> list[Version]:
    """Without retractions for an engine that takes none."""
    return [one for one in versions if one[1] or engine not in ADDS_ONLY]


def _row(version: Version) -> Row:
    return {"id": version[0], "v": version[2], "at": version[3]}


def _kind(version: Version) -> int:
    return INSERT if version[1] else DELETE


def _expected(fold: Fold, versions: Sequence[Version]) -> list[Row]:
    """The rows that a dict has after folding all versions in the order given."""
    found: dict[int, Version] = {}
    for one in versions:
        found[one[0]] = fold(found[one[0]], one) if one[0] in found else one
    return sorted((_row(one) for one in found.values() if one[1]), key=repr)


def _stepwise(fold: Fold, commits: Sequence[Sequence[Version]]) -> list[list[Row]]:
    """The rows after each commit. What a commit leaves as no row is forgotten: nothing older can lie below it."""
    found: dict[int, Version] = {}
    states = []
    for commit in commits:
        ordered = sorted(enumerate(commit), key=lambda one: one[1][0])
        for key in dict.fromkeys(version[0] for _, version in ordered):
            mine = reduce(fold, [version for version in commit if version[0] == key])
            after = fold(found[key], mine) if key in found else mine
            found.pop(key, None)
            if after[1]:
                found[key] = after
        states.append(sorted((_row(one) for one in found.values()), key=repr))
    return states


def test_every_engine_has_an_oracle_and_says_what_it_is() -> None:
    """Whoever registers an engine tells these laws what it means."""
    assert set(ENGINES) == set(ORACLES)
    schema = make_schema(COLUMNS)
    assert isinstance(get_engine(" Deduplicate ", schema), Deduplicate)
    with pytest.raises(Unsupported, match="TS1655"):
        get_engine("magic", schema)


@LAW
@given(st.sampled_from(sorted(ORACLES)), COMMITS, st.data())
def test_batches_and_folds(engine: str, commits: list[list[Version]], data: st.DataObject) -> None:
    """Commits of repeated keys, in the order of their arrival, with folds between them: rows are those of the dict, a
    fold changes none of them, and each changelog turns the rows before into the rows after.
    """
    commits = [_taken(engine, commit) for commit in commits]
    with tempfile.TemporaryDirectory() as folder:
        world = _world(folder, engine, tablestore_duplicates="last")
        before: list[Row] = []
        for commit, after in zip(commits, _stepwise(ORACLES[engine], commits), strict=True):
            change = world.upsert([_row(one) for one in commit], [_kind(one) for one in commit])
            assert world.rows() == after
            assert _replayed(before, world.changelog(change)) == after
            if data.draw(st.booleans()):
                numbers = world.numbers()
                world.fold(full=data.draw(st.booleans()))
                assert world.rows() == after
                assert world.numbers() == numbers
            before = after


@LAW
@given(st.sampled_from(sorted(ORACLES)), VERSIONS, VERSIONS, st.data())
def test_level_zero(engine: str, below: list[Version], inbox: list[Version], data: st.DataObject) -> None:
    """Rows in any file of level 0 are merged in the order of their numbers, then with the rows below them."""
    below, inbox = _taken(engine, below), _taken(engine, inbox)
    with tempfile.TemporaryDirectory() as folder:
        world = _world(folder, engine, tablestore_duplicates="last")
        before, after = _stepwise(ORACLES[engine], [below, inbox])
        world.upsert([_row(one) for one in below], [_kind(one) for one in below])
        if _fill_inbox(world, inbox, data):
            change = world.compact_level_zero()
            assert _replayed(before, world.changelog(change)) == after
            assert {file.meta.level for file in world.state.files} <= set(range(1, 20))
        assert world.rows() == after


@LAW
@given(st.sampled_from(sorted(set(ORACLES) - set(NO_VECTORS))), VERSIONS, st.data())
def test_merge_on_read(engine: str, versions: list[Version], data: st.DataObject) -> None:
    """Without vectors: rows whose positions are left, or that are made of versions in level 0, are the dict's."""
    versions = _taken(engine, versions)
    with tempfile.TemporaryDirectory() as folder:
        world = _world(folder, engine)
        _fill_inbox(world, versions, data)
        reader, files = world.files.reader, world.state.files
        found: list[Row] = []
        if world.files.traits.merge_engine.combines:
            found = [
                row for run in read_merged(reader, files, world.files.traits) for row in run.rows.to_pylist()
            ]
        else:
            hidden = merged_positions(reader, files)
            for file in files:
                dead = hidden.get(file.meta.file_name, ())
                found += [row for at, row in enumerate(reader.read(file).to_pylist()) if at not in dead]
        assert sorted(found, key=repr) == _expected(ORACLES[engine], versions)


@LAW
@given(st.sampled_from(sorted(set(ORACLES) - set(NO_VECTORS))), COMMITS)
def test_the_sequence_field_orders_what_meets(engine: str, commits: list[list[Version]]) -> None:
    """With a sequence field a batch meets the stored row in the order of the field, whoever came first: rows are those
    of the dict, into which each pair is folded in that order.
    """
    commits = [_taken(engine, commit) for commit in commits]
    with tempfile.TemporaryDirectory() as folder:
        world = _world(folder, engine, sequence_field="at")
        found: dict[int, Version] = {}
        for commit in commits:
            once = list({version[0]: version for version in commit}.values())
            world.upsert([_row(one) for one in once], [_kind(one) for one in once])
            for one in once:
                stored = found.pop(one[0], None)
                pair = [one] if stored is None else sorted([stored, one], key=lambda version: version[3])
                after = reduce(ORACLES[engine], pair)
                if after[1]:
                    found[one[0]] = after
            assert world.rows() == sorted((_row(one) for one in found.values()), key=repr)


@LAW
@given(st.sampled_from(sorted(ORACLES)), VERSIONS, st.integers(0, 14))
def test_merging_in_two_goes_is_merging_once(engine: str, versions: list[Version], cut: int) -> None:
    """Some of the oldest versions merged first, then with the rest: the law that lets batches, runs and level 0 be
    merged one after the other.
    """
    versions, merging = (
        _taken(engine, versions),
        ENGINES[engine](make_schema(COLUMNS, options=OPTIONS.get(engine))),
    )
    once = _merge(merging, versions)
    assert _merge(merging, [*_merge(merging, versions[:cut]), *versions[cut:]]) == once
    assert once == _merge_by_oracle(ORACLES[engine], versions)


def test_ties_are_the_engine_s(tmp_path: Path) -> None:
    """Without an order a repeated key is refused where the outcome hangs on it, added up by an engine that adds."""
    rows, twice = [_row((1, True, 2, 0)), _row((1, True, 3, 0))], [INSERT, INSERT]
    for name in [*WHOLE_ROWS, *NO_VECTORS]:
        with pytest.raises(FixData, match="TS1601"):
            _world(str(tmp_path / name), name).upsert(rows, twice)
    for name in ("sum", "aggregation"):
        world = _world(str(tmp_path / name), name)
        world.upsert(rows, twice)
        assert world.rows() == [_row((1, True, 5, 0))]
    with pytest.raises(FixData, match="TS1601"):
        world.upsert([_row((2, True, 1, 0)), _row((2, True, 1, 1))], twice)  # the newest `at` is the row's


def test_an_overwrite_meets_nobody(tmp_path: Path) -> None:
    """Stored rows that an overwrite takes give way under every engine: the rows after it are those that came."""
    for name in ORACLES:
        world = _world(str(tmp_path / name), name)
        world.upsert([_row((key, True, 7, 0)) for key in (1, 2)])
        world.upsert([_row((key, True, 4, 0)) for key in (2, 3)], replace=True)
        assert world.rows() == [_row((key, True, 4, 0)) for key in (2, 3)]


def test_a_delete_before_its_row_and_update_before(tmp_path: Path) -> None:
    """-U is a retraction for engines that combine, and nothing beside +U for those that take rows whole."""
    kinds, rows = [BEFORE, AFTER], [_row((1, False, 2, 0)), _row((1, True, 9, 0))]
    for name, value in (("deduplicate", 9), ("sum", 12)):
        world = _world(str(tmp_path / name), name)
        world.upsert([_row((1, True, 5, 0))])
        world.upsert(rows, kinds)
        assert world.rows() == [_row((1, True, value, 0))]


def _fill_inbox(world: World, versions: Sequence[Version], data: st.DataObject) -> bool:
    """Each version in one of three files at random, numbers by their order; each file sorted, a key once in it."""
    files: list[dict[int, tuple[int, int, Row]]] = []
    for number, one in enumerate(versions, start=1_000):
        free = [file for file in files if one[0] not in file]
        if len(files) < 3 or not free:
            free.append({})
        chosen = data.draw(st.sampled_from(range(len(free))))
        if not any(free[chosen] is file for file in files):
            files.append(free[chosen])
        free[chosen][one[0]] = (number, _kind(one), _row(one))
    for file in files:
        world.add_level_zero([file[key] for key in sorted(file)])
    return bool(files)


def _replayed(before: Sequence[Row], told: Sequence[tuple[int, Row]]) -> list[Row]:
    """The rows after a changelog; -U and -D name rows that are there, +I and +U keys that are not."""
    rows = {row["id"]: row for row in before}
    for kind, row in told:
        if kind in (BEFORE, DELETE):
            assert rows.pop(row["id"]) == row
        else:
            assert row["id"] not in rows
            rows[row["id"]] = row
    return sorted(rows.values(), key=repr)


def _merge(engine: MergeEngine, versions: Sequence[Version]) -> list[Version]:
    """All versions in the order given through the engine."""
    rows = pa.Table.from_pylist([_row(one) for one in versions], make_schema(COLUMNS).arrow_schema())
    taken_away = np.array([not one[1] for one in versions], dtype=np.bool_)
    order = SequenceOrder.of(order_frame([pa.array(range(len(versions)), pa.int64())]), descending=False)
    merged = merge_versions(engine, sort_versions(order_frame([rows.column("id")]), taken_away, order, rows))
    made = merged_rows(rows, merged).to_pylist()
    return [
        (row["id"], not away, row["v"], row["at"])
        for row, away in zip(made, merged.deletes.tolist(), strict=True)
    ]


def _merge_by_oracle(fold: Fold, versions: Sequence[Version]) -> list[Version]:
    keys = sorted({version[0] for version in versions})
    return [reduce(fold, [one for one in versions if one[0] == key]) for key in keys]
