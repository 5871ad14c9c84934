"""The Spark files of docs/engines.md run as they stand there: with Paimon's jar and with Iceberg's."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.docs.snippets import read_snippets
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import Row
from integration_tests.interop.test_iceberg import OursWithIceberg
from integration_tests.interop.test_iceberg_page import NEWEST, PAGE, make_orders

pytestmark = pytest.mark.nightly  # two JVMs, and 45 MB
FILES = {one.file_name: one.text for one in read_snippets(PAGE) if (one.file_name or "").startswith("spark/")}
FIRST = [(1, "new"), (2, "new")]


def text_of(name: str, warehouse: Path) -> str:
    """A file of the page, with this warehouse."""
    text = FILES[name].replace("/path/to/warehouse", str(warehouse))
    return "\n".join(line for line in text.splitlines() if not line.startswith(("-- ", "# ")))


def statements(name: str, warehouse: Path) -> list[str]:
    """Of a script."""
    return [one.strip() for one in text_of(name, warehouse).split(";") if one.strip()]


def settings(name: str, warehouse: Path) -> dict[str, str]:
    """Of catalogs: the reader's session has those that must be there before it starts."""
    pairs = (line.split("=", 1) for line in text_of(name, warehouse).splitlines())
    return {key: value for key, value in pairs if key.startswith("spark.sql.catalog.")}


def test_sql_with_paimon(spark: ProcessPeer, tmp_path: Path) -> None:
    """The newest state, a past one and a tagged one; what is written is there after our compaction."""
    warehouse = tmp_path / "warehouse"
    location = make_orders(Ours(), warehouse)
    Ours().store(location).tags.create("monthly", 1)
    spark.ask("set", values=settings("spark/paimon.conf", warehouse))
    shown = [sorted(spark.select(location, one)) for one in statements("spark/read.sql", warehouse)]
    assert shown == [NEWEST, FIRST, FIRST]
    for one in statements("spark/write.sql", warehouse):
        spark.sql(location, one)
    assert sorted(Ours().read(location)) == NEWEST
    Ours().compact(location)
    assert sorted(Ours().read(location)) == [*NEWEST, (4, "new"), (5, "new")]


def test_reads_with_iceberg(spark_iceberg: ProcessPeer, tmp_path: Path) -> None:
    """By the folder of the table."""
    warehouse = tmp_path / "warehouse"
    make_orders(OursWithIceberg("3"), warehouse)
    program = text_of("spark/read_iceberg.py", warehouse)

    def rows(name: str) -> list[Row]:
        return sorted(spark_iceberg.run(program, name))

    assert (rows("newest"), rows("first")) == (NEWEST, FIRST)


def test_a_hadoop_catalog_with_iceberg(spark_iceberg: ProcessPeer, tmp_path: Path) -> None:
    """By the name of the table, if the storage is a Hadoop catalog."""
    warehouse = tmp_path / "warehouse"
    ours = OursWithIceberg("3", storage="hadoop-catalog")
    make_orders(ours, warehouse)
    spark_iceberg.ask("set", values=settings("spark/iceberg.conf", warehouse))
    found = spark_iceberg.run("rows = spark.sql('SELECT * FROM ice.demo.orders')", "rows")
    assert sorted(found) == NEWEST
