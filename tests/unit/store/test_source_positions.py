"""Positions of sources: they move with the rows, in one claim, and with nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixRequest, RetryError, TablestoreError
from tablestore_engine.store.metadata.source_positions import (
    FORGET_ALL,
    POSITIONS_PROPERTY,
    PositionStep,
    encode_steps,
    joined_steps,
    steps_of,
)
from tablestore_engine.store.stage.staging import Staging
from tablestore_engine.store.table_context import committer_of
from tablestore_engine.store.table_store import TableStore
from tests.doses import examples
from tests.unit.store.table_world import acting, make_table, open_table, put, row


def moved(
    store: TableStore, *rows: Mapping[str, object], stage: str | None = None, **steps: object
) -> int | None:
    """Rows, and `source=(before, after)`, or `source=(after,)` for a reset."""
    given = {
        name: PositionStep(None, pair[0], is_reset=True) if len(pair) == 1 else PositionStep(*pair)  # type: ignore[arg-type, misc, index]
        for name, pair in steps.items()
    }
    return put(store, *rows, properties=encode_steps(given), stage=stage).snapshot_id


def test_they_move_with_the_rows_and_stay(tmp_path: Path) -> None:
    """A commit that moves none keeps them, a fold too; one without rows moves them all the same."""
    store = make_table(tmp_path)
    moved(store, row(1), a=(None, "1"))
    moved(store, row(2), b=(None, "x"))
    put(store, row(3))
    store.compact(full=True)
    assert store.positions() == {"a": "1", "b": "x"}
    before = store.snapshots.find_latest_id() or 0
    assert moved(store, a=("1", "2")) == before + 1
    assert store.positions() == {"a": "2", "b": "x"}
    moved(store, row(9), a=("2", None))
    assert store.positions() == {"b": "x"}


def test_another_position_than_the_rows_were_made_behind(tmp_path: Path) -> None:
    """Nothing is committed: TS1471; a reset does not ask."""
    store = make_table(tmp_path)
    moved(store, row(1), a=(None, "1"))
    for steps in ({"a": (None, "5")}, {"a": ("0", "5")}, {"b": ("1", "2")}):
        with pytest.raises(RetryError, match="TS1471"):
            moved(store, row(2), **steps)
    assert store.snapshots.find_latest_id() == 1
    moved(store, row(2), a=("7",))
    assert store.positions() == {"a": "7"}


def test_two_runs_at_once(tmp_path: Path) -> None:
    """Who claims second has begun at a position that is gone; the first is whole, the second is not there."""

    def other() -> None:
        moved(open_table(tmp_path), row(1, "other"), a=("1", "2"))

    moved(make_table(tmp_path), row(1), a=(None, "1"))
    store = open_table(tmp_path, runtime=acting("commit.manifests", other))
    with pytest.raises(RetryError, match="TS1471"):
        moved(store, row(1, "mine"), a=("1", "2"))
    assert store.positions() == {"a": "2"}
    assert store.snapshots.find_latest_id() == 2


def test_rows_that_replace_all_forget_each_source_of_their_base(tmp_path: Path) -> None:
    """Also one that another writer moved meanwhile; what the commit itself has read counts. No source: no commit."""

    def other() -> None:
        moved(open_table(tmp_path), row(5), b=(None, "x"))

    properties = encode_steps({**FORGET_ALL, "c": PositionStep(None, "now", is_reset=True)})
    moved(make_table(tmp_path), row(1), a=(None, "1"))
    put(open_table(tmp_path, runtime=acting("commit.manifests", other)), row(1), properties=properties)
    store = open_table(tmp_path)
    assert store.positions() == {"c": "now"}
    assert put(store, properties=encode_steps(FORGET_ALL)).snapshot_id == 4
    assert store.positions() == {}
    assert put(store, properties=encode_steps(FORGET_ALL)).snapshot_id == 4


def test_a_staged_write_forgets_what_the_one_before_it_has_read(tmp_path: Path) -> None:
    """Both of one stage: what main knew, and what the first write moved."""
    store = make_table(tmp_path)
    moved(store, row(1), a=(None, "1"))
    steps = {"a": PositionStep("1", "2"), "b": PositionStep(None, "x")}
    for number, one in ((1, steps), (2, FORGET_ALL)):
        identity = {"commit_user": "u", "commit_identifier": number}
        put(
            store,
            row(number),
            stage="s",
            properties=encode_steps(one),
            builds_on_stage=True,
            **identity,
        )
    Staging(store.context, committer_of(store.context)).publish("s")
    assert store.positions() == {}


def test_the_same_commit_again_is_no_other_run(tmp_path: Path) -> None:
    """Its identity is looked for before its position."""
    store = make_table(tmp_path)
    properties = encode_steps({"a": PositionStep(None, "1")})
    words = {"commit_user": "u", "commit_identifier": 1, "properties": properties}
    assert put(store, row(1), **words).snapshot_id == put(store, row(1), **words).snapshot_id == 1


def test_rows_and_positions_go_back_together(tmp_path: Path) -> None:
    """By a rollback, and by a restore, which forgets sources that were not there."""
    store = make_table(tmp_path)
    moved(store, row(1), a=(None, "1"))
    moved(store, row(2), a=("1", "2"), b=(None, "x"))
    store.restore(store.snapshots.get(1))
    assert store.positions() == {"a": "1"}
    store.restore(store.snapshots.get(2))
    assert store.positions() == {"a": "2", "b": "x"}
    newest = store.snapshots.find_latest_id()
    store.restore(store.snapshots.get(2))
    assert store.snapshots.find_latest_id() == newest
    store.rollback(1)
    assert store.positions() == {"a": "1"}


def test_snapshots_of_other_engines(tmp_path: Path) -> None:
    """They say nothing: the one before counts; where that has expired it cannot be told, and that is kept: TS1470."""
    store = make_table(tmp_path)
    moved(store, row(1), a=(None, "1"))
    newest = store.snapshots.get(1)
    for number in (2, 3):
        foreign = replace(newest, id=number, uuid=None, commit_user="flink", properties=None)
        assert store.snapshots.claim(foreign)
    assert store.positions() == {"a": "1"}
    put(store, row(5))
    assert store.positions() == {"a": "1"}
    for number in (5, 6):
        foreign = replace(store.snapshots.get(4), id=number, uuid=None, commit_user="flink", properties=None)
        assert store.snapshots.claim(foreign)
    store.fileio.delete(store.context.layout.snapshot_path(4))
    for number in (1, 2, 3):
        store.fileio.delete(store.context.layout.snapshot_path(number))
    late = open_table(tmp_path)
    with pytest.raises(FixRequest, match="TS1470"):
        late.positions()
    put(late, row(6))
    with pytest.raises(FixRequest, match="TS1470"):
        late.positions()
    with pytest.raises(TablestoreError, match="TS1470"):
        moved(late, row(7), a=("1", "2"))
    moved(late, row(7), a=("3",))
    assert late.positions() == {"a": "3"}


def test_a_staged_snapshot_brings_them_when_it_is_published(tmp_path: Path) -> None:
    """On the base of then; not when the source was moved meanwhile: TS1471."""
    store = make_table(tmp_path)
    moved(store, row(1), a=(None, "1"))
    staging = Staging(store.context, committer_of(store.context))
    moved(store, row(2), stage="s", a=("1", "2"))
    assert store.positions() == {"a": "1"}
    store.compact(full=True)
    staging.publish("s")
    assert store.positions() == {"a": "2"}
    moved(store, row(3), stage="s", a=("2", "3"))
    moved(store, a=("2", "4"))
    with pytest.raises(RetryError, match="TS1471"):
        staging.publish("s")
    assert store.positions() == {"a": "4"}


def test_texts_of_another_writer(tmp_path: Path) -> None:
    """Whatever lies under our names in a write's properties is not taken for positions."""
    store = make_table(tmp_path)
    put(store, row(1), properties={POSITIONS_PROPERTY: json.dumps({"a": "9"})})
    assert store.positions() == {}


NAMES, TEXTS = st.sampled_from("abc"), st.one_of(st.none(), st.sampled_from("123"))
STEPS = st.dictionaries(NAMES, st.builds(PositionStep, TEXTS, TEXTS, st.just(False))) | st.dictionaries(
    NAMES, st.builds(PositionStep, st.none(), TEXTS, st.just(True))
)


@given(STEPS, STEPS)
@settings(max_examples=examples(50, 200))
def test_steps_as_text_and_one_behind_the_other(
    first: dict[str, PositionStep], then: dict[str, PositionStep]
) -> None:
    """They are read as they were written; two joined end where the second ends and begin where the first began."""
    assert steps_of(encode_steps(first)) == first
    joined = joined_steps(first, then)
    for name, step in joined.items():
        assert step.after == then.get(name, first.get(name)).after  # type: ignore[union-attr]
        if name in first and not (name in then and then[name].is_reset):
            assert (step.before, step.is_reset) == (first[name].before, first[name].is_reset)
