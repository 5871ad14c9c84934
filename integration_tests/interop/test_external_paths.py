"""Java's tables with `data-file.external-paths`, under each strategy: we read what Java reads, and change nothing.

Tables     made once for the module; each keeps its files in folders beside the warehouse, `lake a` with a space.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.rows import arrow_rows, assert_same, plain_changes, plain_rows
from integration_tests.interop.schemas import Schema, schema
from tablestore_engine.api import Engine, Table
from tablestore_engine.errors import Unsupported
from tests.doses import cases
from tests.unit.api.external_world import files_of

COLUMNS = {"id": "BIGINT", "v": "STRING", "p": "STRING"}
STRATEGIES: Mapping[str, Mapping[str, str]] = {
    "round-robin": {},
    "specific-fs": {"data-file.external-paths.specific-fs": "file"},
    "weight-robin": {"data-file.external-paths.weights": "3,1"},
}
KEYED = {"bucket": "2", "changelog-producer": "input"}
KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], str, Mapping[str, str]]] = {
    "marked": (("id",), (), "round-robin", {**KEYED, "deletion-vectors.enabled": "true"}),
    "merged": (("id",), (), "weight-robin", {**KEYED, "merge-engine": "partial-update"}),
    "parts": ((), ("p",), "specific-fs", {"bucket": "-1", "file-index.bloom-filter.columns": "id"}),
    "orc": ((), (), "round-robin", {"bucket": "-1", "file.format": "orc"}),
}
SEEDS = pytest.mark.parametrize("seed", cases(range(8), 1))
VALUES = ("x/%2F y", "ü", "a=b", None)


@dataclass(frozen=True)
class World:
    """`top` has the warehouse `w` and the folder `lake a`."""

    top: Path

    @property
    def lake(self) -> Path:
        """Where all files of data lie."""
        return self.top / "lake a"

    def location(self, name: str) -> Path:
        """The folder of a table."""
        return self.top / "w" / "demo.db" / name

    def engine(self) -> Engine:
        """Ours, which may read the lake."""
        return Engine(self.top / "w", external_paths=[str(self.lake)])


def _schema(world: World, name: str) -> Schema:
    keys, partitions, strategy, more = KINDS[name]
    folders = ",".join(f"file://{world.lake}/{one}" for one in ("one", "two"))
    options = {
        "data-file.external-paths": folders,
        "data-file.external-paths.strategy": strategy,
        **STRATEGIES[strategy],
        **more,
    }
    return schema(COLUMNS, keys=keys, partitions=partitions, options=options)


def _fill(java: JavaPaimon, world: World, name: str, seed: int) -> None:
    rng, made = random.Random(f"{name} {seed}"), _schema(world, name)
    java.create(world.location(name), made)
    for turn in range(3):
        ids = rng.sample(range(12), rng.randrange(2, 8))
        given: list[dict[str, Any]] = [
            {"id": one, "v": rng.choice([f"t{turn}", None]), "p": rng.choice(VALUES)} for one in ids
        ]
        java.write(world.location(name), arrow_rows(made, given), options={"write-only": "false"})
    if name != "orc":
        java.compact(world.location(name))


@pytest.fixture(scope="module")
def worlds(java: JavaPaimon, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], World]:
    """The tables of a seed, made when first asked for; read only."""
    made: dict[int, World] = {}

    def find(seed: int) -> World:
        if seed not in made:
            made[seed] = World(tmp_path_factory.mktemp("outside"))
            for name in KINDS:
                _fill(java, made[seed], name, seed)
        return made[seed]

    return find


def _changes(table: Table) -> list[Any]:
    rows = table.changelog()
    return plain_changes(rows.drop_columns(["_snapshot_id"]), "_row_kind")


@SEEDS
def test_javas_external_files_are_read(seed: int, java: JavaPaimon, worlds: Callable[[int], World]) -> None:
    """Every snapshot has Java's rows, and a keyed table its changelog; verify finds nothing. A process without the
    folder reads no row. All files lie in the lake, those of changelogs and indexes, too.
    """
    world = worlds(seed)
    assert (
        len(list((world.lake / "one").rglob("data-*"))) * len(list((world.lake / "two").rglob("data-*"))) > 0
    )
    with world.engine() as engine, Engine(world.top / "w") as closed:
        for name, (keys, *_) in KINDS.items():
            location, table = world.location(name), engine.table(f"demo.{name}")
            assert not list(location.rglob("data-*")) + list(location.rglob("changelog-*"))
            for number, _ in java.snapshots(location):
                shown = plain_rows(table.to_arrow(snapshot=number))
                assert_same(java.read(location, number), shown, f"{name} {number}")
            if keys:
                stream = java.stream(location, scan__mode="from-snapshot", scan__snapshot_id="1").poll()
                told = [change for _, changes in stream for change in changes]
                assert_same(told, _changes(table), f"{name}: changelog")
            found = plain_rows(table.scan(filter="id = 3").to_arrow())
            assert_same(java.filter(location, "id", "equal", "3"), found, f"{name}: filter")
            assert table.verify() == ()
            with pytest.raises(Unsupported, match="TS1191"):
                closed.table(f"demo.{name}").to_arrow()


@SEEDS
def test_javas_external_files_stay(
    seed: int, java: JavaPaimon, worlds: Callable[[int], World], tmp_path: Path
) -> None:
    """We refuse to write, compact, clone, convert and clean such a table, and Java reads it as before. A copy of its
    rows is a table of ours; dropping the table leaves all files of the lake.
    """
    world = worlds(seed)
    before = files_of(world.lake)
    shutil.copytree(world.top / "w", tmp_path / "w")
    with Engine(tmp_path / "w", external_paths=[str(world.lake)]) as engine:
        for name in KINDS:
            location, table = tmp_path / "w" / "demo.db" / name, engine.table(f"demo.{name}")
            rows, held = java.read(location), table.to_arrow()
            changes: tuple[Callable[[], object], ...] = (
                partial(table.write, held),
                partial(table.compact, full=True),
                partial(table.delete, "id = 3"),
                partial(engine.clone, f"demo.{name}", "demo.cloned"),
                partial(table.orphans, delete=True, older_than_ms=0),
                partial(table.rescale, 4),
                partial(engine.truncate, f"demo.{name}"),
            )
            for change in (*changes, *([table.convert] if name == "merged" else [])):
                with pytest.raises(Unsupported, match=r"TS1127|TS1229|TS1380"):
                    change()
            assert_same(rows, java.read(location), name)
            engine.create_table(f"demo.{name}_copy", held).append(held)
            assert_same(rows, plain_rows(engine.table(f"demo.{name}_copy").to_arrow()), "copy")
            engine.drop_table(f"demo.{name}")
    assert files_of(world.lake) == before
