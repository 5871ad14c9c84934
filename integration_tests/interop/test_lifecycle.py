"""What only our engine does to a table, other readers follow: staged snapshots, rollback; and system tables."""

from __future__ import annotations

from pathlib import Path

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.oracle import Oracle
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import arrow_rows, assert_same
from integration_tests.interop.schemas import Schema, schema
from tablestore_engine.store.orphan_files.clean_orphans import OrphanRequest

MADE = schema({"id": "BIGINT", "v": "STRING"}, keys=("id",), options={"bucket": "2"})


def _upsert(
    us: Ours, location: Path, oracle: Oracle, keys: range, value: str
) -> list[tuple[str, dict[str, object]]]:
    changes: list[tuple[str, dict[str, object]]] = [("+U", {"id": key, "v": value}) for key in keys]
    us.write(location, arrow_rows(MADE, [row for _, row in changes]))
    oracle.apply(changes)
    return changes


def test_staged_snapshots_are_seen_by_nobody_until_published(
    java: JavaPaimon, spark: ProcessPeer, pypaimon: ProcessPeer, rust: ProcessPeer, tmp_path: Path
) -> None:
    """A staged snapshot changes nothing for any reader; published, all see it, and Java's stream tells it once."""
    us, location, oracle = Ours(), tmp_path / "ours.db" / "staged", Oracle(MADE)
    us.create(location, MADE)
    _upsert(us, location, oracle, range(8), "first")
    stream = java.stream(location, scan__mode="latest")
    assert stream.poll() == []
    held = [("+U", {"id": key, "v": "held"}) for key in range(5, 12)]
    us.write(location, arrow_rows(MADE, [row for _, row in held]), stage="gate")
    for reader in (java, spark, pypaimon, rust, us):
        assert_same(oracle.rows(), reader.read(location), f"{reader.name} before publishing")
    assert stream.poll() == []
    us.store(location).staging.publish("gate")
    changes = oracle.apply(held)
    for reader in (java, spark, pypaimon, rust, us):
        assert_same(oracle.rows(), reader.read(location), f"{reader.name} after publishing")
    assert_same(
        changes, [change for _, batch in stream.poll() for change in batch], "stream after publishing"
    )
    assert us.store(location).verify() == ()


def test_rolled_back_tables_go_on(java: JavaPaimon, rust: ProcessPeer, tmp_path: Path) -> None:
    """After our rollback Java shows the earlier snapshot; a commit after it, by either, is right. What was taken back
    goes as orphan files, and nothing that either has written since.
    """
    us, location, oracle = Ours(), tmp_path / "ours.db" / "rolled", Oracle(MADE)
    us.create(location, MADE)
    _upsert(us, location, oracle, range(6), "kept")
    us.write(location, arrow_rows(MADE, [{"id": key, "v": "taken back"} for key in range(3, 9)]))
    us.store(location).rollback(1)
    every = OrphanRequest(grace_ms=-(1 << 60), delete=True)
    assert {"data", "manifest"} <= us.store(location).orphans(every).by_kind.keys()
    for reader in (java, rust, us):
        assert_same(oracle.rows(), reader.read(location), f"{reader.name} after rollback")
    _upsert(us, location, oracle, range(4, 7), "again")
    late = [("+U", {"id": key, "v": "java"}) for key in (0, 20)]
    java.write(location, arrow_rows(MADE, [row for _, row in late]), options={"write-only": "false"})
    oracle.apply(late)
    us.store(location).orphans(every)
    for reader in (java, rust, us):
        assert_same(oracle.rows(), reader.read(location), f"{reader.name} after going on")
    assert us.store(location).verify() == ()


def test_restored_tables_go_on(java: JavaPaimon, rust: ProcessPeer, tmp_path: Path) -> None:
    """Rows of an earlier snapshot as the newest one: others read them, Java's stream sees the way back, and Java's
    writer goes on from there.
    """
    us, location, oracle = Ours(), tmp_path / "ours.db" / "restored", Oracle(MADE)
    us.create(location, MADE)
    _upsert(us, location, oracle, range(6), "kept")
    us.write(location, arrow_rows(MADE, [{"id": key, "v": "taken back"} for key in range(3, 9)]))
    store = us.store(location)
    store.restore(store.snapshots.get(1))
    for reader in (java, rust, us):
        assert_same(oracle.rows(), reader.read(location), f"{reader.name} after the restore")
    streamed = dict(java.stream(location, scan__mode="from-snapshot", scan__snapshot_id="1").poll())
    back = [
        *(("-U", (key, "taken back")) for key in range(3, 6)),
        *(("+U", (key, "kept")) for key in range(3, 6)),
        *(("-D", (key, "taken back")) for key in range(6, 9)),
    ]
    assert_same(back, streamed[3], "Java's stream of the restore")
    late = [("+U", {"id": key, "v": "java"}) for key in (0, 20)]
    java.write(location, arrow_rows(MADE, [row for _, row in late]), options={"write-only": "false"})
    oracle.apply(late)
    for reader in (java, rust, us):
        assert_same(oracle.rows(), reader.read(location), f"{reader.name} after going on")
    assert us.store(location).verify() == ()


def test_rescaled_tables_go_on(java: JavaPaimon, rust: ProcessPeer, tmp_path: Path) -> None:
    """Other buckets, the same rows, for every reader; Java's stream sees no change in it and every change after it, and
    Java's writer goes on in the new buckets.
    """
    us, location, oracle = Ours(), tmp_path / "ours.db" / "rescaled", Oracle(MADE)
    us.create(location, MADE)
    _upsert(us, location, oracle, range(20), "first")
    _upsert(us, location, oracle, range(5, 9), "second")
    store = us.store(location)
    stream = java.stream(location, scan__mode="latest-full")
    assert len(stream.poll()) == 1
    store.rescale(6)
    for reader in (java, rust, us):
        assert_same(oracle.rows(), reader.read(location), f"{reader.name} after the rescale")
    _upsert(us, location, oracle, range(3, 6), "third")
    back = [(kind, (key, value)) for key, old in ((3, "first"), (4, "first"), (5, "second"))
            for kind, value in (("-U", old), ("+U", "third"))]  # fmt: skip
    ((_, changes),) = stream.poll()
    assert_same(back, changes, "Java's stream behind the rescale")
    late = [("+U", {"id": key, "v": "java"}) for key in (0, 30)]
    java.write(location, arrow_rows(MADE, [row for _, row in late]), options={"write-only": "false"})
    oracle.apply(late)
    _upsert(us, location, oracle, range(28, 32), "last")
    for reader in (java, rust, us):
        assert_same(oracle.rows(), reader.read(location), f"{reader.name} after going on")
    assert us.store(location).verify() == ()


def test_system_tables_of_java_read_ours(java: JavaPaimon, tmp_path: Path) -> None:
    """Java's $snapshots, $schemas, $files, $manifests, $partitions, $buckets and $options read what we wrote."""
    made = Schema(MADE.columns, MADE.keys, (), {**MADE.options, "num-levels": "4"})
    us, location, oracle = Ours(), tmp_path / "ours.db" / "system", Oracle(made)
    us.create(location, made)
    for number in range(6):
        _upsert(us, location, oracle, range(number, number + 4), f"{number}")
    snapshots = java.system_table(location, "snapshots")
    assert snapshots.column("snapshot_id").to_pylist() == [number for number, _ in us.snapshots(location)]
    assert java.system_table(location, "schemas").num_rows == 1
    files = java.system_table(location, "files")
    plan = us.store(location).plan_scan()
    assert sorted(path.rsplit("/", 1)[-1] for path in files.column("file_path").to_pylist()) == sorted(
        file.meta.file_name for file in plan.files
    )
    for name in ("manifests", "partitions", "buckets", "options", "table_indexes"):
        assert java.system_table(location, name).num_rows > 0, name
