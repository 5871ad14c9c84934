"""`Table.certify` over tables of every kind, by readers of others in their environments, at two snapshots.

Beside test_ours_read_by_others and test_iceberg it compares types, values to the bit and rows that no Python value can
hold, by the code that users run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from integration_tests.interop.environments import ICEBERG, PYPAIMON, RUST
from integration_tests.interop.golden import Golden
from integration_tests.interop.missing import made_or_skip
from integration_tests.interop.our_tables import OURS
from integration_tests.interop.test_iceberg import NAMES, iceberg
from tablestore_engine.api import Engine
from tablestore_engine.certify.certificate import Certificate
from tests.doses import cases

__all__ = ["iceberg"]  # the fixture
ENVIRONMENTS = {"pypaimon": PYPAIMON, "pypaimon-rust": RUST, "duckdb": ICEBERG, "pyiceberg": ICEBERG}
EMPTIED = "only NULL lists of structs, which are empty here"


def certified(location: Path, reader: str, snapshot: int | None = None) -> Certificate:
    """By one reader in its own environment."""
    python = str(made_or_skip(ENVIRONMENTS[reader].python))
    engine = Engine(str(location.parent.parent))
    name = f"{location.parent.name.removesuffix('.db')}.{location.name}"
    return engine.table(name).certify([reader], snapshot=snapshot, python=python)


@pytest.mark.parametrize("reader", ["pypaimon", "pypaimon-rust"])
@pytest.mark.parametrize("name", cases(list(OURS), 1))
def test_a_reader_of_paimon_is_certified(ours: Callable[[str], Golden], name: str, reader: str) -> None:
    """Schema, columns and rows."""
    table = ours(name)
    for snapshot in (min(table.history.rows), None):
        found = certified(table.location, reader, snapshot)
        assert found.is_clean, found


@pytest.mark.parametrize("reader", ["duckdb", "pyiceberg"])
@pytest.mark.parametrize("name", cases(NAMES, 1))
def test_a_reader_of_iceberg_is_certified(
    iceberg: Callable[[str, str], Golden], name: str, reader: str
) -> None:
    """The same over Iceberg metadata; what pyiceberg shows as empty lists is reported as nothing else."""
    table = iceberg(name, "3")
    for snapshot in (min(table.history.rows), None):
        found = certified(table.location, reader, snapshot)
        [result] = found.readers
        assert found.is_clean or (reader == "pyiceberg" and EMPTIED in result.details[-1]), found
