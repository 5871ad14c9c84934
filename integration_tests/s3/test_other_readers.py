"""Readers of others over an S3 server: `certify` with each of them, and a converted table."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from integration_tests.interop.environments import ICEBERG, PYPAIMON, RUST
from integration_tests.interop.missing import made_or_skip
from integration_tests.s3.warehouses import address, open_files
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.s3_server import S3ServerInfo
from tests.doses import cases
from tests.unit.store.table_world import make_table, row
from tests.unit.store.test_changelog import foreign_level_zero
from tests.unit.store.test_conversion import DELETE, INSERT, LEFT, MERGED

pytestmark = [pytest.mark.usefixtures("credentials")]
ENVIRONMENTS = {"pypaimon": PYPAIMON, "pypaimon-rust": RUST, "duckdb": ICEBERG, "pyiceberg": ICEBERG}


@pytest.fixture
def engine(s3_server: S3ServerInfo, bucket: str, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A warehouse of the test's own."""
    with Engine(address(bucket, request.node.name.partition("[")[0], s3_server.url)) as opened:
        yield opened


@pytest.mark.parametrize("reader", cases(ENVIRONMENTS, 2))
def test_a_reader_is_certified_on_a_store(engine: Engine, reader: str) -> None:
    """Two states of a keyed table with updates and deletes, one that begins with Iceberg metadata."""
    options = {"metadata.iceberg.storage": "table-location", "bucket": "2"}
    rows = pa.table({"id": range(100), "value": [f"v{one}" for one in range(100)]})
    name = f"demo.of_{reader.replace('-', '_')}"
    engine.write(name, rows, WriteSpec(TableSpec(primary_key=("id",), options=options)))
    table = engine.table(name)
    table.write(rows.slice(90).set_column(1, "value", pa.array(["new"] * 10)))
    table.delete("id < 5")
    python = str(made_or_skip(ENVIRONMENTS[reader].python))
    for snapshot in (1, None):
        found = table.certify([reader], snapshot=snapshot, python=python)
        assert found.is_clean, found
        assert found.rows == (100 if snapshot else 95)


def test_a_table_of_another_engine_is_converted_on_a_store(engine: Engine) -> None:
    """Rows that readers merge: each reader has the same ones before and after, and the next write is ours."""
    store = make_table(open_files(engine.warehouse).root, options=MERGED, fileio=open_files(engine.warehouse))
    foreign_level_zero(store, [row(1), row(2), row(3, "b")], [INSERT] * 3)
    foreign_level_zero(store, [row(1, "c"), row(2), row(4, "b")], [INSERT, DELETE, INSERT])
    table = engine.table("demo.t")
    before = table.to_arrow().sort_by("id").to_pylist()
    assert before == LEFT
    table.convert()
    table = engine.table("demo.t")
    assert table.schema.options["deletion-vectors.enabled"] == "true"
    assert table.to_arrow().sort_by("id").to_pylist() == LEFT
    table.upsert([row(4, "ours")])
    assert table.to_arrow().sort_by("id").to_pylist() == [*LEFT[:2], row(4, "ours")]
    assert table.verify() == ()
