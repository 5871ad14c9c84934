"""What we write, Iceberg's readers show equal, at every snapshot: keyed, partitioned, evolved and keyless tables."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from integration_tests.interop.engine_matrix import CELL
from integration_tests.interop.golden import Golden, Kind, make_table
from integration_tests.interop.our_tables import OURS
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.predicates import assert_pruned_alike
from integration_tests.interop.rows import as_it_is, assert_same, emptied
from integration_tests.interop.sample_data import ALL_TYPES, make_rows
from integration_tests.interop.scenarios import Step
from integration_tests.interop.schemas import Schema, schema
from tablestore_engine.errors import FixRequest
from tablestore_engine.store.expiry.expire_snapshots import expire_snapshots
from tablestore_engine.store.iceberg_metadata.iceberg_sync import sync_iceberg
from tablestore_engine.store.retention import Retention
from tests.doses import case_rows, cases

REFUSED = "with_time"
NAMES = [name for name in OURS if name != REFUSED]
VERSIONS = ("2", "3")
RANDOM_TABLES = range(500)
# pyiceberg 0.12.0 shows a NULL list of structs, and a NULL map of them, as an empty one
PYICEBERG_EMPTIES = ("nested", "append", "append_bucketed", "hollow_rows")


class OursWithIceberg(Ours):
    """Our engine, with Iceberg metadata after each commit, as a warehouse writes it."""

    def __init__(self, version: str, storage: str = "table-location") -> None:
        """Of the Iceberg format."""
        self._options = {
            "metadata.iceberg.storage": storage,
            "metadata.iceberg.format-version": version,
        }

    def create(self, location: Path, schema: Schema) -> None:
        """With the option on."""
        super().create(location, replace(schema, options={**schema.options, **self._options}))

    def write(self, location: Path, *words: Any, **more: Any) -> Any:
        """A commit and its metadata."""
        done = super().write(location, *words, **more)
        sync_iceberg(self.store(location).context)
        return done

    def compact(self, location: Path) -> None:
        """A compaction and its metadata."""
        super().compact(location)
        sync_iceberg(self.store(location).context)


@pytest.fixture(scope="session")
def iceberg(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Golden]:
    """The table of a name in OURS and a version of the Iceberg format; read only."""
    warehouse = tmp_path_factory.mktemp("iceberg")
    made: dict[tuple[str, str], Golden] = {}

    def table(name: str, version: str) -> Golden:
        if (name, version) not in made:
            location = warehouse / f"v{version}.db" / name
            made[name, version] = make_table(OursWithIceberg(version), location, OURS[name]())
        return made[name, version]

    return table


def assert_every_snapshot(table: Golden, peer: ProcessPeer) -> None:
    """All rows and their number, of each snapshot and of the newest by the hint."""
    for snapshot, expected in table.history.rows.items():
        where = f"{peer.name}, {table.location}, snapshot {snapshot}"
        assert_same(expected, peer.read(table.location, snapshot), where)
        assert peer.count(table.location, snapshot) == len(expected), where
    newest = table.history.rows[max(table.history.rows)]
    assert_same(newest, peer.read(table.location), f"{peer.name}, {table.location}, newest")
    assert peer.count(table.location) == len(newest)


@pytest.mark.parametrize(("name", "version"), case_rows(list(product(NAMES, VERSIONS)), 3))
def test_duckdb_reads_every_snapshot(
    iceberg: Callable[[str, str], Golden], duckdb: ProcessPeer, name: str, version: str
) -> None:
    """All rows and columns, also of the newest snapshot by the hint, and their number."""
    assert_every_snapshot(iceberg(name, version), duckdb)


# by day other tables than DuckDB has
@pytest.mark.parametrize(("name", "version"), case_rows(list(product(NAMES[::-1], VERSIONS)), 3))
def test_pyiceberg_reads_every_snapshot(
    iceberg: Callable[[str, str], Golden],
    pyiceberg: ProcessPeer,
    name: str,
    version: str,
    record_property: Callable[[str, object], None],
) -> None:
    """The same; where it takes NULL for an empty list, both are compared as empty ones."""
    table = iceberg(name, version)
    plain = emptied if name in PYICEBERG_EMPTIES else as_it_is
    for snapshot, expected in table.history.rows.items():
        where = f"pyiceberg, {name}, v{version}, snapshot {snapshot}"
        assert_same(plain(expected), plain(pyiceberg.read(table.location, snapshot)), where)
    described = pyiceberg.ask("describe", location=str(table.location))
    assert described["newest"] == max(table.history.rows)
    assert set(described["snapshots"]) >= set(table.history.rows)
    if name in PYICEBERG_EMPTIES:
        record_property(CELL, "OK: NULL lists and maps of structs are shown as empty, a fault of pyiceberg")


@pytest.mark.nightly  # a JVM more, and 45 MB
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_iceberg_in_java_reads_every_snapshot(
    iceberg: Callable[[str, str], Golden], spark_iceberg: ProcessPeer, name: str, version: str
) -> None:
    """The reader that engines on the JVM have: all rows and columns, and their number by metadata."""
    assert_every_snapshot(iceberg(name, version), spark_iceberg)


def test_a_table_with_a_time_column_is_refused(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Iceberg's TIME has microseconds, our files have milliseconds."""
    with pytest.raises(FixRequest, match="TS1143"):
        make_table(OursWithIceberg("3"), tmp_path / "ours.db" / REFUSED, OURS[REFUSED]())
    record_property(CELL, "refused: TS1143, Iceberg's TIME has other digits")


@pytest.mark.parametrize("seed", cases(list(RANDOM_TABLES), 1))
def test_random_tables_are_read_alike(
    tmp_path: Path, duckdb: ProcessPeer, pyiceberg: ProcessPeer, seed: int
) -> None:
    """Any keys, partitions, buckets, options and order of commits; all rows as we read them ourselves, and filtered."""
    ours = OursWithIceberg(random.Random(seed).choice(VERSIONS))
    table = make_table(ours, tmp_path / "ours.db" / "t", _random_kind(seed))
    for snapshot in ours.store(table.location).snapshots.list_ids():
        expected = ours.read(table.location, snapshot)
        for peer in (duckdb, pyiceberg):
            where = f"{peer.name}, seed {seed}, snapshot {snapshot}"
            plain = emptied if peer is pyiceberg else as_it_is
            assert_same(plain(expected), plain(peer.read(table.location, snapshot)), where)
            assert_pruned_alike(peer, table.location, snapshot, random.Random(where), filters=2)


def test_readers_see_an_expired_and_tagged_table(
    tmp_path: Path, duckdb: ProcessPeer, pyiceberg: ProcessPeer
) -> None:
    """After an expiry, a rollback and a new commit under an old number."""
    ours = OursWithIceberg("3")
    table = make_table(ours, tmp_path / "ours.db" / "t", OURS["folding"]())
    store = ours.store(table.location)
    store.tags.create("third", 3)
    sync_iceberg(store.context)
    tagged = ours.read(table.location, 3)
    rules = Retention(keep_min=3, keep_max=3, retained_ms=0, grace_ms=0, limit=None)
    expire_snapshots(store.context, rules)
    store.rollback(store.snapshots.list_ids()[-2])
    for peer in (duckdb, pyiceberg):
        for snapshot in store.snapshots.list_ids():
            assert_same(ours.read(table.location, snapshot), peer.read(table.location, snapshot), peer.name)
        assert_same(tagged, peer.read(table.location, 3), f"{peer.name}, tag")
    described = pyiceberg.ask("describe", location=str(table.location))
    assert described["tags"] == {"third": 3}
    assert described["snapshots"] == [3, *store.snapshots.list_ids()]


def _random_kind(seed: int) -> Kind:
    chance = random.Random(seed)
    names = chance.sample(sorted(set(ALL_TYPES) - {"t"}), 6)
    columns = {"id": "BIGINT", "dt": "STRING", **{name: ALL_TYPES[name] for name in names}}
    is_keyed, is_partitioned = chance.random() < 0.7, chance.random() < 0.5
    options = {"num-levels": chance.choice(["4", "20"])} if is_keyed else {}
    options |= {"bucket": str(chance.randint(1, 3))} if is_keyed else {}
    made = schema(
        columns,
        keys=(("dt", "id") if is_partitioned else ("id",)) if is_keyed else (),
        partitions=("dt",) if is_partitioned else (),
        options=options,
    )
    return Kind(made, _random_steps(columns, chance, is_keyed=is_keyed), early=False)


def _random_steps(columns: Mapping[str, Any], chance: random.Random, *, is_keyed: bool) -> list[Step]:
    steps = []
    for turn in range(8):
        rows = make_rows(columns, chance.sample(range(30), 8), seed=turn, required=("id", "dt"))
        rows = [{**row, "dt": f"day {row['id'] % 3}"} for row in rows]
        if is_keyed and turn and chance.random() < 0.3:
            steps.append(Step(tuple(("-D", row) for row in rows)))
        elif is_keyed and turn and chance.random() < 0.2:
            steps.append(Step(compact=True))
        elif turn and chance.random() < 0.2:
            steps.append(Step(overwrite=tuple(rows)))
        else:
            steps.append(Step(tuple(("+U" if is_keyed else "+I", row) for row in rows)))
    return steps
