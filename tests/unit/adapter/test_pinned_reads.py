"""A test's statement whose table is replaced while it reads: another thread's test has let the new one in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dbt.adapters.tablestore.connections import TablestoreHandle
from tablestore_engine.api import TableVersion
from tablestore_engine.errors import DataFileGone, FixData, StagedVersionMissing, TablestoreError
from tablestore_engine.spi import ReadLog, TableRead

STAGED, NEW = {"d.t": TableVersion(branch="run")}, {"d.t": TableVersion(snapshot=1)}


class OneFailure:
    """An engine whose first statement fails behind its look-ups; in a real one it is a matter of timing."""

    def __init__(self, error: TablestoreError) -> None:
        self.error = error
        self.pins: list[Mapping[str, TableVersion]] = []

    def sql(self, text: str, *, versions: Mapping[str, TableVersion], reads: ReadLog | None = None) -> Any:
        """`me:1` is read first, then `me:2`."""
        self.pins.append(versions)
        number = len(self.pins)
        if reads is not None:
            reads.note(TableRead("d.t", f"me:{number}", number))
        if number == 1:
            raise self.error
        return text


def handle(error: TablestoreError) -> tuple[TablestoreHandle, OneFailure]:
    """Of a test, with pins that have changed since."""
    engine = OneFailure(error)
    made = TablestoreHandle(engine)  # type: ignore[arg-type]
    pins = iter((STAGED, NEW))
    made.reads, made.pin = ReadLog(), lambda: next(pins)
    return made, engine


@pytest.mark.parametrize(
    "kind", [DataFileGone("TS1562", "", why="", fix=""), StagedVersionMissing("TS1317", "", why="", fix="")]
)
def test_a_table_that_was_replaced_is_read_again(kind: TablestoreError) -> None:
    """Once more, with fresh pins; only what the statement has read in the end counts for its verdict."""
    made, engine = handle(kind)
    assert made.run("select 1") == "select 1"
    assert engine.pins == [STAGED, NEW]
    assert made.reads is not None
    assert [read.version for read in made.reads.reads()] == ["me:2"]


GONE = StagedVersionMissing("TS1317", "", why="", fix="")


def test_a_model_reads_again_what_was_published_meanwhile() -> None:
    """Its statement had asked where the parent's rows are, and another thread's test let them go."""
    made, engine = handle(GONE)
    made.reads = None
    assert made.run("select 1") == "select 1"
    assert engine.pins == [STAGED, NEW]


def test_what_somebody_else_removed_is_told() -> None:
    """The versions are the same: another process has the staged snapshot published or dropped."""
    made, engine = handle(GONE)
    made.reads, made.pin = None, lambda: STAGED
    with pytest.raises(StagedVersionMissing):
        made.run("select 1")
    assert engine.pins == [STAGED]


def test_a_model_does_not_run_again_after_another_error() -> None:
    """Its statement may have written."""
    made, engine = handle(DataFileGone("TS1562", "", why="", fix=""))
    made.reads = None
    with pytest.raises(DataFileGone):
        made.run("select 1")
    assert engine.pins == [STAGED]


def test_any_other_error_is_told_at_once() -> None:
    """With what the statement has read, since an error counts for these rows."""
    made, engine = handle(FixData("TS1560", "", why="", fix=""))
    with pytest.raises(FixData):
        made.run("select 1")
    assert (len(engine.pins), made.reads and [read.version for read in made.reads.reads()]) == (1, ["me:1"])
