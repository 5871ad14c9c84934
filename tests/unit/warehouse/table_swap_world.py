"""One name in the warehouse, a table with another key for it, and a file system that ends in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.fileio.local import LocalFileIO
from tests.doubles.faults import SimulatedCrash

NAME = "d.orders"
CHANGES = ("rename", "delete", "delete_tree", "create_exclusive", "replace", "write", "mkdirs", "copy")


def rows(*ids: int) -> pa.Table:
    """Rows with these ids."""
    return pa.table({"id": list(ids), "day": [f"day {number}" for number in ids]})


def keyed(*key: str, **more: Any) -> WriteSpec:
    """A table with this key."""
    return WriteSpec(table=TableSpec(primary_key=key), **more)


def put_view(engine: Engine) -> None:
    """The name is a view."""
    engine.create_database("d")
    engine.create_view(NAME, "select 1 as id")


def put_table(engine: Engine) -> None:
    """The name is a table with the key id."""
    engine.write(NAME, rows(1), keyed("id"))


OLD = {"view": put_view, "table": put_table}


def meaning(engine: Engine) -> tuple[str, object]:
    """What a reader of the name gets."""
    found = engine.find_relation(NAME)
    assert found is not None
    if found.kind == "view":
        view = engine.find_view(NAME)
        assert view is not None
        return "view", view.sql
    return "table", (engine.table(NAME).facts().primary_key, engine.table(NAME).scan().to_arrow().to_pylist())


NEW = ("table", (("day",), rows(2, 3).to_pylist()))


def leftovers(folder: Path) -> list[str]:
    """Everything in the warehouse that is neither the table nor the frame of views and waiting tables."""
    found = [str(path.relative_to(folder)) for path in folder.rglob("*") if ".tablestore" in str(path)]
    frame = ("d.db/.tablestore", "d.db/.tablestore/next", "d.db/.tablestore/views")
    return [path for path in found if path not in frame]


def dying(monkeypatch: pytest.MonkeyPatch, at: int, *, is_after: bool) -> list[str]:
    """From now on the `at`-th change of the file system (from 1) is the last; the changes so far come back."""
    calls: list[str] = []

    def wrap(name: str) -> Callable[..., Any]:
        real = getattr(LocalFileIO, name)

        def call(*arguments: Any, **named: Any) -> Any:
            calls.append(name)
            if len(calls) > at - (not is_after):  # the dead tidy nothing up
                raise SimulatedCrash(name)
            result = real(*arguments, **named)
            if len(calls) == at:
                raise SimulatedCrash(name)
            return result

        return call

    for name in CHANGES:
        monkeypatch.setattr(LocalFileIO, name, wrap(name))
    return calls


def deaths(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    prepare: Callable[[Engine], object],
    act: Callable[[Engine], object],
    is_after: bool,
) -> Iterator[tuple[Path, list[str]]]:
    """`act` killed before or behind each of its changes, in a new warehouse each: the warehouse, the changes so far.

    INVARIANT  readers have what `prepare` left or NEW, and once NEW, a later death leaves nothing else.
    """
    seen = []
    for at in range(1, 200):
        folder = tmp_path / str(at)
        prepare(Engine(str(folder)))
        before = meaning(Engine(str(folder)))
        with monkeypatch.context() as patch:
            calls = dying(patch, at, is_after=is_after)
            if _outlives(lambda folder=folder: act(Engine(str(folder)))):  # type: ignore[misc] # folder: of this turn
                break
        found = meaning(Engine(str(folder)))
        assert found in (before, NEW), calls
        seen.append(found == NEW)
        yield folder, calls
    assert seen == sorted(seen)
    assert set(seen) == {False, True}


def _outlives(act: Callable[[], object]) -> bool:
    try:
        act()
    except SimulatedCrash:
        return False
    return True
