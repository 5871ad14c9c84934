"""The ground of all other tests: on tables that Java wrote, the readers show what the oracle expects."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration_tests.interop.golden import KINDS, Golden
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import assert_same
from tests.doses import cases, examples


@pytest.mark.parametrize("name", cases(KINDS, 4))
def test_java_tables_show_what_the_oracle_expects(
    golden: Callable[[str], Golden], java: JavaPaimon, name: str
) -> None:
    """Java reads its own tables as our oracle says at every snapshot: so oracle, data and driver are right."""
    table = golden(name)
    for snapshot, expected in table.history.rows.items():
        assert_same(expected, java.read(table.location, snapshot), f"java, {name}, snapshot {snapshot}")


@pytest.mark.parametrize("reader", ["spark", "pypaimon", "rust"])
def test_readers_agree_on_java_tables(
    golden: Callable[[str], Golden], reader: str, request: pytest.FixtureRequest
) -> None:
    """The other readers see Java's newest snapshot of each kind they support as the oracle does; by day of each second
    kind.
    """
    peer: ProcessPeer = request.getfixturevalue(reader)
    for name in list(KINDS)[:: examples(4, 1)]:
        table = golden(name)
        if reader in table.kind.readers:
            newest = max(table.history.rows)
            assert_same(table.history.rows[newest], peer.read(table.location), f"{reader}, {name}, newest")
