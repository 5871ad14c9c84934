"""The Flink scripts of docs/engines.md run as they stand there, on a table of ours."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from integration_tests.docs.snippets import list_commands, read_snippets
from integration_tests.interop.flink_sql import FlinkRefused
from integration_tests.interop.flink_tables import FlinkTables, ending_copy
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import Change, Row
from integration_tests.interop.test_iceberg import OursWithIceberg
from integration_tests.interop.test_iceberg_page import NEWEST, PAGE, make_orders
from tablestore_engine.api import Engine
from tablestore_engine.cli.main import main
from tablestore_engine.errors import Unsupported

pytestmark = pytest.mark.nightly  # 190 MB of jars
SCRIPTS = {
    one.file_name: one.text for one in read_snippets(PAGE) if (one.file_name or "").startswith("flink/")
}
RUN = ("read", "follow", "write", "write_and_compact", "compact", "create")
(CONVERT,) = (
    words
    for one in read_snippets(PAGE)
    if one.language == "bash"
    for words in list_commands(one)
    if words[:2] == ("tablestore", "convert")
)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """The table of the page, with a tag."""
    location = make_orders(Ours(), tmp_path / "warehouse")
    Ours().store(location).tags.create("monthly", 1)
    return location


def _run(flink: FlinkTables, location: Path, name: str, *changed: tuple[str, str]) -> list[list[Change]]:
    """The rows of each statement of a script of the page, on this table."""
    text = SCRIPTS[f"flink/{name}.sql"]
    for old, new in (("file:/path/to/warehouse", f"file:{location.parent.parent}"), *changed):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return flink.cluster.run(text)


def _rows(changes: list[Change]) -> list[Row]:
    return sorted(row for _, row in changes)


def test_every_script_of_the_page_is_run_here() -> None:
    """A further one needs a test below."""
    assert set(SCRIPTS) == {f"flink/{name}.sql" for name in RUN}


def test_read(flink_tables: FlinkTables, orders: Path) -> None:
    """The newest state, a past one, a tagged one, and changes between two."""
    _, _, newest, first, tagged, between = _run(flink_tables, orders, "read")
    assert _rows(newest) == NEWEST
    assert _rows(first) == _rows(tagged) == [(1, "new"), (2, "new")]
    assert sorted(between) == [("+I", (3, "new")), ("+U", (1, "paid")), ("-U", (1, "new"))]


def test_follow(flink_tables: FlinkTables, orders: Path, tmp_path: Path) -> None:
    """Each change since snapshot 1; here the stream ends at the newest snapshot."""
    copy = ending_copy(orders, tmp_path / "copy" / "demo.db" / "orders")
    ends = ("'scan.mode' =", "'scan.bounded.watermark' = '0', 'scan.mode' =")
    changes = _run(flink_tables, copy, "follow", ends)[-1]
    inserts = [("+I", (one, "new")) for one in (1, 2, 3)]
    assert sorted(changes) == [*inserts, ("+U", (1, "paid")), ("-U", (1, "new"))]


@pytest.mark.parametrize("by_flink", [False, True])
def test_write_and_wait(flink_tables: FlinkTables, orders: Path, by_flink: bool) -> None:
    """Nothing is visible before the compaction, by us or by Flink, then all of it."""

    def compact() -> None:
        if by_flink:
            assert _run(flink_tables, orders, "compact")[-1] == [("+I", ("Success",))]
        else:
            Ours().compact(orders)

    _run(flink_tables, orders, "write")
    assert _rows(flink_tables.sql(orders, "SELECT * FROM {table}")) == sorted(Ours().read(orders)) == NEWEST
    compact()
    written = [(1, "paid"), (2, "paid"), (4, "new"), (5, "new")]
    assert sorted(flink_tables.read(orders)) == sorted(Ours().read(orders)) == written


def test_write_and_compact(flink_tables: FlinkTables, orders: Path) -> None:
    """Visible at once."""
    _run(flink_tables, orders, "write_and_compact")
    written = [*NEWEST, (4, "new"), (5, "new")]
    assert sorted(flink_tables.read(orders)) == sorted(Ours().read(orders)) == written


def test_a_table_with_iceberg_metadata_needs_a_setting(flink_tables: FlinkTables, tmp_path: Path) -> None:
    """Without it the rows are committed and the job fails; with it neither, and our commit shows both."""
    location = make_orders(OursWithIceberg("3"), tmp_path / "warehouse")
    setting = "SET 'paimon.lake.demo.orders.metadata.iceberg.storage' = 'disabled'"
    assert setting in PAGE.read_text()
    insert = "INSERT INTO {table} VALUES (4, 'new')"
    flink_tables.sql(location, insert, before=setting.replace(".lake.", ".p.") + ";\n")
    with pytest.raises(FlinkRefused, match="NullPointerException"):
        flink_tables.sql(location, insert.replace("4", "5"))
    Ours().compact(location)
    assert sorted(Ours().read(location)) == [*NEWEST, (4, "new"), (5, "new")]


def test_create_and_convert(flink_tables: FlinkTables, orders: Path) -> None:
    """Flink's own table is refused, then converted: both write it, and see the rows of both."""
    _run(flink_tables, orders, "create")
    visits = orders.with_name("visits")
    with Engine(str(orders.parent.parent)) as engine:
        table = engine.table("demo.visits")
        row = pa.table({"id": [3], "page": ["ours"]})
        with pytest.raises(Unsupported, match=r"(?s)TS1127.*tablestore convert"):
            table.write(row)
        assert main([*CONVERT[1:], "--warehouse", str(orders.parent.parent)]) == 0
        found = [(1, "home"), (2, "home")]
        assert sorted(flink_tables.read(visits)) == sorted(Ours().read(visits)) == found
        table.write(row)
        flink_tables.sql(visits, "INSERT INTO {table} VALUES (2, 'flink')")
        table.compact()
    found = [(1, "home"), (2, "flink"), (3, "ours")]
    assert sorted(flink_tables.read(visits)) == sorted(Ours().read(visits)) == found
