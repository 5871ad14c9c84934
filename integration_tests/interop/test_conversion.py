"""Tables that Java Paimon made without deletion vectors are converted: Java reads them before, during and after, and
both write them in turns from then on.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError

from integration_tests.interop.flink_sql import FlinkRefused
from integration_tests.interop.flink_tables import FlinkTables
from integration_tests.interop.golden import Golden
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import arrow_rows, assert_same
from integration_tests.interop.schemas import Type, schema
from integration_tests.interop.test_in_turns import FEW, Shared, deletes, upserts
from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.warehouse.write.converted_schema import plan_conversion
from tests.doses import cases
from tests.doubles.faults import SimulatedCrash, crashing

# as Flink's CREATE TABLE … PRIMARY KEY makes them, and variants
TABLES: dict[str, dict[str, str]] = {
    "plain": {"bucket": "-1", "dynamic-bucket.target-row-num": "7"},
    "fixed": {"bucket": "2"},
    "lookup": {"bucket": "2", "changelog-producer": "lookup"},
    "input": {"bucket": "2", "changelog-producer": "input"},
    "write-only": {"bucket": "2", "write-only": "true"},
}
POINTS = ("commit.manifests", "commit.claimed", "expire.data", "commit.schema", "commit.done")


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Where the table lies."""
    return tmp_path / "shared.db" / "t"


def made_by_java(java: JavaPaimon, location: Path, name: str, readers: list[ProcessPeer]) -> Shared:
    """Inserts, updates, deletes and a key that comes back, in three commits."""
    columns: dict[str, Type] = FEW
    made = schema(columns, keys=("id",), options=TABLES[name])
    shared = Shared(java, location, made, readers, made_by=java)
    options = {} if name == "write-only" else None
    for changes in (
        upserts(range(20), 1),
        [*upserts(range(15, 30), 2), *deletes(range(3, 8))],
        upserts([4, 40], 3),
    ):
        rows = arrow_rows(shared.oracle.schema, [row for _, row in changes])
        java.write(location, rows, [kind for kind, _ in changes], options=options)
        shared.oracle.apply(changes)
    return shared


def convert(location: Path, buckets: int | None, point: str | None = None, nth: int = 1) -> None:
    """As the command does, until it is killed at a failpoint."""
    store = Ours().store(location)
    if point is not None:
        store = replace(store, runtime=crashing(SYSTEM, point, nth))
    store.convert(plan_conversion(store, buckets, "uuid-1"))


@contextmanager
def _refused_in_new_buckets() -> Iterator[None]:
    """A write of another engine; it may be refused when rows lie in new buckets, and the schema is the old one."""
    try:
        yield
    except (Py4JError, FlinkRefused) as refused:
        if "Try to write table with a new bucket num" not in str(refused):
            raise


@pytest.mark.parametrize("name", cases(list(TABLES), 1))
def test_converted_table_of_java_is_written_in_turns(
    java: JavaPaimon, pypaimon: ProcessPeer, spark: ProcessPeer, rust: ProcessPeer, location: Path, name: str
) -> None:
    """All readers have the rows right after the conversion and after commits of both; each change comes once."""
    shared = made_by_java(java, location, name, [pypaimon, spark, rust])
    with pytest.raises(Unsupported, match="tablestore convert"):
        shared.ours(upserts([1], 9))
    convert(location, None)
    shared.check("converted")
    first = java.snapshots(location)[0][0]
    for number, _ in java.snapshots(location):
        assert_same(shared.oracle.rows(), java.read(location, number), f"java, snapshot {number}")
    stream = java.stream(location, scan__mode="from-snapshot", scan__snapshot_id=str(first))
    shared.ours([*upserts(range(10, 35, 3), 4), *deletes([0, 4])])
    shared.check("after us")
    shared.fully([*upserts([0, 12, 60], 5), *deletes([13])])
    shared.check("after java")
    shared.inbox(upserts([61, 12], 6))
    shared.ours(upserts([4, 62], 7))
    shared.check("after java's level 0 and us")
    java.compact(location)
    shared.check("after java's compaction")
    told = [change for _, batch in stream.poll() for change in batch]
    assert_same(shared.changes, told, "java's stream")


@pytest.mark.nightly  # by day kills in tests/unit/store/test_conversion.py, and the conversion that ends
@pytest.mark.parametrize("name", cases(["plain", "fixed"], 1))
def test_killed_conversion_is_read_exactly_by_java(
    java: JavaPaimon, pypaimon: ProcessPeer, location: Path, name: str, tmp_path: Path
) -> None:
    """Killed at one point after the other, of the merge and of the switch: rows of the newest snapshot, a filter by key
    and, once the new schema file is there, every snapshot that is left are the table's for Java and pypaimon. Java then
    writes and compacts, or refuses to.
    """
    for number, (point, nth) in enumerate((point, nth) for point in POINTS for nth in (1, 2)):
        place = tmp_path / f"{number}.db" / "t"
        shared = made_by_java(java, place, name, [pypaimon])
        with suppress(SimulatedCrash):
            convert(place, 3, point, nth)
        where = f"killed at {point}:{nth}"
        shared.check(where)
        for key in (4, 17, 40):
            expected = [row for row in shared.oracle.rows() if row[0] == key]
            assert_same(expected, java.filter(place, "id", "equal", str(key)), f"{where}, key {key}")
        if len(list((place / "schema").glob("schema-*"))) > 1:
            for snapshot, _ in java.snapshots(place):
                assert_same(shared.oracle.rows(), java.read(place, snapshot), f"{where}, snapshot {snapshot}")
        with _refused_in_new_buckets():
            shared.fully(upserts([17, 70], 9))
        shared.check(f"{where}, then written by java")
        convert(place, 3)
        shared.check(f"{where}, then ended")
        shared.ours(upserts([4, 41], 8))
        shared.check(f"{where}, then written")


GOLDEN = (
    *("merge_on_read", "dynamic_bucket", "evolving_keyed", "partitioned_keyed", "changelog_lookup"),
    *("changelog_full_compaction", "changelog_input", "write_only", "thin", "nested_keyed", "with_time"),
)


@pytest.mark.parametrize("name", cases(GOLDEN, 3))
def test_conversion_keeps_the_rows_of_each_kind_of_table_of_java(
    java: JavaPaimon, golden: Callable[[str], Golden], location: Path, name: str
) -> None:
    """All types, nested ones, schema changes, partitions, each producer: equal rows in Java and here, also after a
    write of ours. Changes that no changelog has are refused before Java compacts.
    """
    shutil.copytree(golden(name).location, location)
    expected = java.read(location)
    try:
        convert(location, 3)
    except FixRequest as untold:
        assert untold.code == "TS1558"  # noqa: PT017 - some kinds have such changes
        java.compact(location)
        convert(location, 3)
    us = Ours()
    for number, _ in java.snapshots(location):
        assert_same(expected, java.read(location, number), f"java, snapshot {number}")
    assert_same(expected, us.read(location), "ours")
    us.write(location, us.read_arrow(location).slice(0, 5))
    assert_same(expected, java.read(location), "java, after our write")
    assert us.store(location).verify() == ()


def test_sequence_field_decides_what_a_conversion_keeps(java: JavaPaimon, location: Path) -> None:
    """Rows of later commits with a smaller value lose, as for Java before."""
    made = schema(FEW, keys=("id",), options={"bucket": "1", "sequence.field": "price"})
    java.create(location, made)
    for seed in range(4):
        java.write(location, arrow_rows(made, [row for _, row in upserts(range(30), seed)]))
    expected = java.read(location)
    convert(location, 2)
    assert_same(expected, java.read(location), "java")
    assert_same(expected, Ours().read(location), "ours")


def test_partitions_of_java_are_converted(java: JavaPaimon, pypaimon: ProcessPeer, location: Path) -> None:
    """Dynamic buckets of several partitions, one of which is emptied: each gets its fixed buckets."""
    columns: dict[str, Type] = {"dt": "STRING", "id": "BIGINT", "v": "STRING"}
    made = schema(
        columns,
        keys=("dt", "id"),
        partitions=("dt",),
        options={"bucket": "-1", "dynamic-bucket.target-row-num": "3"},
    )
    shared = Shared(java, location, made, [pypaimon], made_by=java)
    for kind, seed in (("+I", 1), ("+U", 2)):
        rows = [(kind, {"dt": "abc"[key % 3], "id": key, "v": str(seed)}) for key in range(0, 24, seed)]
        shared.fully(rows)
    shared.fully([("-D", {"dt": "c", "id": key, "v": ""}) for key in range(2, 24, 3)])
    convert(location, 2)
    shared.check("converted")
    shared.ours([("+U", {"dt": "abc"[key % 3], "id": key, "v": "ours"}) for key in range(20, 27)])
    shared.check("after us")


@pytest.mark.nightly  # 190 MB of jars
@pytest.mark.parametrize("buckets", ["-1", "2"])
@pytest.mark.parametrize(("point", "nth"), [*((point, 1) for point in POINTS), ("commit.manifests", 2)])
def test_killed_conversion_is_read_and_written_by_flink(
    flink_tables: FlinkTables, location: Path, point: str, nth: int, buckets: str
) -> None:
    """A table by Flink's CREATE TABLE: after the kill a query, and one by key, have its rows; an INSERT is exact or
    refused; after the end Flink writes, compacts and reads with us.
    """
    location.parent.mkdir(parents=True)
    columns = "(id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED)"
    flink_tables.sql(location, f"CREATE TABLE {{table}} {columns} WITH ('bucket' = '{buckets}')")
    rows = dict.fromkeys(range(30), "a")
    _insert(flink_tables, location, rows)
    _insert(flink_tables, location, changed := dict.fromkeys(range(20, 40), "b"))
    flink_tables.sql(location, "DELETE FROM {table} WHERE id IN (3, 25)")
    rows = {key: v for key, v in {**rows, **changed}.items() if key not in (3, 25)}
    with suppress(SimulatedCrash):
        convert(location, 3, point, nth)
    _check(flink_tables, location, rows, "killed")
    with _refused_in_new_buckets():
        _insert(flink_tables, location, late := {3: "late", 21: "late"}, compacts=True)
        rows.update(late)
    _check(flink_tables, location, rows, "written by flink")
    convert(location, 3)
    _check(flink_tables, location, rows, "ended")
    _insert(flink_tables, location, {3: "flink", 50: "flink"}, compacts=True)
    Ours().write(location, pa.table({"id": [50, 51], "v": ["ours", "ours"]}))
    _check(flink_tables, location, {**rows, 3: "flink", 50: "ours", 51: "ours"}, "written by both")


def _insert(flink: FlinkTables, location: Path, rows: dict[int, str], *, compacts: bool = False) -> None:
    values = ", ".join(f"({key}, '{v}')" for key, v in rows.items())
    setting = f"SET 'paimon.p.shared.{location.name}.write-only' = 'false';\n" if compacts else ""
    flink.sql(location, f"INSERT INTO {{table}} VALUES {values}", before=setting)


def _check(flink: FlinkTables, location: Path, rows: dict[int, str], where: str) -> None:
    assert_same(list(rows.items()), flink.read(location), f"flink, {where}")
    assert_same(list(rows.items()), Ours().read(location), f"ours, {where}")
    for key in (3, 17, 21, 50):
        found = flink.sql(location, f"SELECT v FROM {{table}} WHERE id = {key}")
        assert [row for _, row in found] == [(v,) for v in [rows.get(key)] if v], f"{where}, key {key}"
    assert Ours().store(location).verify() == (), where
