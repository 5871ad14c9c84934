"""What we write, every reader of Paimon shows equal, at every snapshot: the promise P6."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from integration_tests.interop.engine_matrix import CELL
from integration_tests.interop.golden import Golden
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.our_tables import OURS
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import assert_same
from integration_tests.interop.spark_faults import LIMITS, as_spark_shows
from tests.doses import case_rows, cases


@pytest.mark.parametrize("name", cases(OURS, 5))
def test_we_show_what_the_oracle_expects(ours: Callable[[str], Golden], name: str) -> None:
    """We read our own table as the oracle says at every snapshot."""
    table = ours(name)
    for snapshot, expected in table.history.rows.items():
        assert_same(expected, Ours().read(table.location, snapshot), f"ours, {name}, snapshot {snapshot}")


@pytest.mark.parametrize("name", cases(OURS, 2))
def test_java_reads_ours_at_every_snapshot(
    ours: Callable[[str], Golden], java: JavaPaimon, name: str
) -> None:
    """Java Paimon 1.4.2 shows the same rows, and counts them right where it counts by metadata."""
    table = ours(name)
    for snapshot, expected in table.history.rows.items():
        where = f"java, {name}, snapshot {snapshot}"
        assert_same(expected, java.read(table.location, snapshot), where)
        assert java.count(table.location, snapshot) in {None, len(expected)}, where


@pytest.mark.parametrize("name", cases(list(OURS), 3))
def test_spark_reads_ours_at_every_snapshot(
    ours: Callable[[str], Golden],
    spark: ProcessPeer,
    name: str,
    record_property: Callable[[str, object], None],
) -> None:
    """paimon-spark 0.9.0 shows the same rows by VERSION AS OF and the same count(*), but for spark_faults.py."""
    table = ours(name)
    for snapshot, expected in table.history.rows.items():
        where = f"spark, {name}, snapshot {snapshot}"
        assert_same(as_spark_shows(name, expected), spark.read(table.location, snapshot), where)
    newest = as_spark_shows(name, table.history.rows[max(table.history.rows)])
    assert_same(newest, spark.read(table.location), f"spark, {name}, newest")
    assert spark.count(table.location) == len(newest)
    record_property(CELL, LIMITS.get(name, "OK"))


@pytest.mark.parametrize(("name", "reader"), case_rows(list(product(OURS, ["pypaimon", "rust"])), 2))
def test_python_and_rust_read_ours_at_every_snapshot(
    ours: Callable[[str], Golden], reader: str, name: str, request: pytest.FixtureRequest
) -> None:
    """pypaimon 2.1.0 and pypaimon-rust 0.4.0 show the same rows."""
    peer: ProcessPeer = request.getfixturevalue(reader)
    table = ours(name)
    for snapshot, expected in table.history.rows.items():
        assert_same(expected, peer.read(table.location, snapshot), f"{reader}, {name}, snapshot {snapshot}")
    newest = table.history.rows[max(table.history.rows)]
    assert_same(newest, peer.read(table.location), f"{reader}, {name}, newest")
