"""Partition values that are blank, or only look it: the folders, rows and overwrites of Java Paimon."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.oracle import DYNAMIC
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import arrow_rows, assert_same, plain_rows
from integration_tests.interop.schemas import Schema, schema
from tablestore_engine.warehouse.write.target_schema import KEYED_DEFAULTS
from tests.doses import cases

# Java's Character.isWhitespace: no-break spaces (U+00A0, U+2007, U+202F), zero width and U+0085 are no white space.
_VALUES = (
    "", " ", "  ", "\t", "\n", "\r\n", "\x1f", "\x85", "\u00a0", "\u00a0\u00a0", " \u00a0",
    "\u1680", "\u180e", "\u2003", "\u2007", "\u200b", "\u2028", "\u202f", "\u205f", "\u3000",
    "\u3000 ", "\ufeff", "x", " x ", "\u00a0x", "__DEFAULT_PARTITION__",
)  # fmt: skip
_COLUMNS = {"id": "BIGINT", "p": "STRING", "v": "STRING"}


def _keyed() -> Schema:
    return schema(_COLUMNS, keys=("id", "p"), partitions=("p",), options={**KEYED_DEFAULTS, "bucket": "1"})


def _append() -> Schema:
    return schema(_COLUMNS, partitions=("p",), options={"bucket": "-1"})


def _rows(values: tuple[str | None, ...], v: str) -> list[dict[str, object]]:
    return [{"id": number, "p": value, "v": v} for number, value in enumerate(values)]


def _folders(location: Path) -> set[str]:
    """Names of the partition folders that hold data files."""
    return {path.parent.parent.name for path in location.glob("*/bucket-*/*.parquet")}


@pytest.mark.parametrize("kind", cases(["keyed", "append"], 1))
def test_blank_values_are_javas(java: JavaPaimon, rust: ProcessPeer, tmp_path: Path, kind: str) -> None:
    """Written once and once more, Java and we make the same folders; Java, Rust and we read every value back, from
    either's table, and after the other has written to it, overwritten one of the blank partitions, and compacted.
    """
    made = _keyed() if kind == "keyed" else _append()
    values: tuple[str | None, ...] = _VALUES if kind == "keyed" else (*_VALUES, None)
    us, theirs, ours = Ours(), tmp_path / "t.db" / "theirs", tmp_path / "t.db" / "ours"
    first, again = _rows(values, "first"), _rows(values, "again")
    java.create(theirs, made)
    us.create(ours, made)
    for rows in (first, again):
        java.write(theirs, arrow_rows(made, rows), options={"write-only": "false"})
        us.write(ours, arrow_rows(made, rows))
    assert _folders(ours) == _folders(theirs)
    expected = again if kind == "keyed" else [*first, *again]
    for location in (theirs, ours):
        _all_read(java, rust, us, location, expected, "written twice")
    turned = _rows(values, "turned")
    java.write(ours, arrow_rows(made, turned), options={"write-only": "false"})
    us.write(theirs, arrow_rows(made, turned))
    expected = turned if kind == "keyed" else [*expected, *turned]
    for location in (theirs, ours):
        _all_read(java, rust, us, location, expected, "written by the other")
    one = [{"id": 1, "p": " ", "v": "over"}, {"id": 8, "p": "\u00a0", "v": "over"}]
    expected = [row for row in expected if row["p"] not in (" ", "\u00a0")] + one
    for location in (theirs, ours):
        us.write(location, arrow_rows(made, one), overwrite=DYNAMIC)
        _all_read(java, rust, us, location, expected, "overwritten")
        us.compact(location)
        _all_read(java, rust, us, location, expected, "compacted")
        assert us.store(location).verify() == ()


def _all_read(
    java: JavaPaimon, rust: ProcessPeer, us: Ours, location: Path, rows: list[dict[str, object]], when: str
) -> None:
    expected = plain_rows(arrow_rows(_append(), rows))
    for reader in (java, rust, us):
        assert_same(expected, reader.read(location), f"{reader.name} of {location.name}, {when}")
