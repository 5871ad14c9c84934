"""What Java Paimon wrote, we read equal at every snapshot, or refuse by the name of the feature."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from integration_tests.interop.golden import KINDS, REFUSED, Golden, make_table
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import arrow_rows, assert_same
from integration_tests.interop.schemas import schema
from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.warehouse.write.converted_schema import plan_conversion
from tests.doses import cases


@pytest.mark.parametrize("name", cases(KINDS, 5))
def test_java_tables_read_equal_at_every_snapshot(golden: Callable[[str], Golden], name: str) -> None:
    """Each kind of table that Java writes shows us the same rows as the oracle, snapshot by snapshot."""
    table = golden(name)
    ours = Ours()
    for snapshot, expected in table.history.rows.items():
        assert_same(expected, ours.read(table.location, snapshot), f"{name}, snapshot {snapshot}")


@pytest.mark.parametrize("name", REFUSED)
def test_unknown_features_are_refused_by_name(java: JavaPaimon, tmp_path: Path, name: str) -> None:
    """A table whose rows we cannot tell is refused, and the message names what stands against it."""
    feature, kind = REFUSED[name]
    table = make_table(java, tmp_path / "theirs.db" / name, kind)
    with pytest.raises(Unsupported, match=feature):
        Ours().read(table.location)


def test_postponed_rows_are_hidden_until_they_have_buckets(java: JavaPaimon, tmp_path: Path) -> None:
    """`bucket` = -2: rows in real buckets are read and merged as Java does, those that wait are not; writes are
    refused, and `verify` has nothing to say of files that no reader opens.
    """
    made = schema({"id": "BIGINT", "v": "STRING"}, keys=("id",), options={"bucket": "2"})
    location = tmp_path / "theirs.db" / "postponed"
    java.create(location, made)
    for seed in ("a", "b"):
        java.write(
            location, arrow_rows(made, [{"id": n, "v": seed} for n in range(10 if seed == "a" else 5)])
        )
    file = location / "schema" / "schema-0"  # as after a compaction of Flink, which Java's own API has not
    file.write_text(file.read_text().replace('"bucket" : "2"', '"bucket" : "-2"'))
    java.write(location, arrow_rows(made, [{"id": n, "v": "waits"} for n in range(3, 20)]))
    assert (location / "bucket-postpone").is_dir()
    expected = [(n, "b" if n < 5 else "a") for n in range(10)]
    assert_same(expected, java.read(location), "java")
    ours = Ours()
    assert_same(expected, ours.read(location), "ours")
    store = ours.store(location)
    newest = store.latest()
    assert newest is not None
    assert store.find_rows(newest, pa.table({"id": pa.array([4, 7, 15])})).to_pylist() == [
        {"id": 4, "v": "b"},
        {"id": 7, "v": "a"},
    ]
    assert store.verify() == ()
    with pytest.raises(Unsupported, match=r"(?s)TS1127.*postponed bucket"):
        ours.write(location, arrow_rows(made, [{"id": 1, "v": "ours"}]))
    with pytest.raises(FixRequest, match=r"(?s)TS1558.*postponed"):
        store.convert(plan_conversion(store, 2, "uuid-1"))


def test_append_table_with_vectors_of_spark(java: JavaPaimon, spark: ProcessPeer, tmp_path: Path) -> None:
    """Rows that paimon-spark deletes from an append table by deletion vectors are gone for us too."""
    made = schema({"id": "BIGINT", "v": "STRING"}, options={"deletion-vectors.enabled": "true"})
    location = tmp_path / "theirs.db" / "append_vectors"
    java.create(location, made)
    for start in (0, 10, 20):
        java.write(location, arrow_rows(made, [{"id": n, "v": str(n)} for n in range(start, start + 20)]))
    spark.sql(location, "DELETE FROM {table} WHERE id % 7 = 3")
    expected = [(n, str(n)) for start in (0, 10, 20) for n in range(start, start + 20) if n % 7 != 3]
    assert (location / "index").is_dir()
    assert_same(expected, Ours().read(location), "append table with deletion vectors")
    assert_same(expected, java.read(location), "the same by java")
