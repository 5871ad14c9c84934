"""What a model's commit does to its positions: how far it has read each input, and by which query.

CHANGE     the position at which a model starts and resumes, and when it must not
INVARIANT  a new table has read nothing: who has made it meanwhile wins (TS1471). Only a write that replaces all rows
           sets positions whatever they were.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.api import ChangesBetween, FixRequest, Table, TableVersion
from tablestore_engine.spi import TABLE_SOURCE, ChangesInput, PositionStep

TO_NOW = TableVersion(changes=ChangesBetween(None))
QUERY = "query"  # the name among positions of what the rows were made by
TIME = "time"  # and of the moment of the run that made them, if the query uses the time: epoch milliseconds
_LEFT = "left "  # before the identity of an input, among positions


def changes_name(relation: TablestoreRelation) -> str:
    """By which a model's SQL reads the changes of an input, without quotes; what it means is a version of the node."""
    return str(relation.replace(version=TO_NOW).render()).replace("`", "")


def moved(node: str, known: Mapping[str, str], found: Mapping[str, ChangesInput]) -> dict[str, PositionStep]:
    """Of a later run. `known`: positions of the model's table; `found`: of each input its range. Raises TS1841."""
    steps = {one.source: one.step for one in found.values() if one.step is not None}
    gone = left(known, [one.source for one in found.values()])
    new = [name for name, one in found.items() if one.source not in known]
    if gone and new:
        raise exchanged(node, new[0])
    check_left(node, known, {one.source: name for name, one in found.items()})
    return {**steps, **gone}


def begun(ends: Mapping[str, str | None], *, replaces: bool) -> dict[str, PositionStep]:
    """`ends`: source → the position behind these rows."""
    return {
        source: PositionStep(None, after, is_reset=replaces)
        for source, after in ends.items()
        if replaces or after is not None
    }


def forgotten(known: Mapping[str, str], read: Collection[str]) -> dict[str, PositionStep]:
    """Of tables that a model has read before and reads no more, or that were made anew."""
    gone = (one for one in known if one.startswith(TABLE_SOURCE) and one not in read)
    return {one: PositionStep(known[one], None) for one in gone}


def left(known: Mapping[str, str], read: Collection[str]) -> dict[str, PositionStep]:
    """forgotten(), and that their rows are in the table: read once more from the start they would come twice."""
    gone = forgotten(known, read)
    marks = {_mark(one): PositionStep(known.get(_mark(one)), step.before) for one, step in gone.items()}
    return {**gone, **marks}


def check_left(node: str, known: Mapping[str, str], read: Mapping[str, str]) -> None:
    """`read`: source → table. Raises FixRequest TS1841."""
    for source, table in read.items():
        if source not in known and _mark(source) in known:
            raise FixRequest(
                "TS1841",
                f"model {_short(node)} has read {table} before, then without it, and reads it again",
                why="rows that it has of it would come twice, and changes since then are not known",
                fix="run the model once with --full-refresh",
            )


def exchanged(node: str, new: str) -> FixRequest:
    """A model that reads a table for the first time and another no more: whose rows are whose, nobody knows."""
    return FixRequest(
        "TS1841",
        f"model {_short(node)} has not read {new} yet, but another table",
        why="that was created again, or the model's SQL names another: rows that only the old one had would stay",
        fix="run the model once with --full-refresh",
    )


def check_begin(node: str, target: str, own: Table | None) -> None:
    """`own`: the model's table, which knows of no position: all rows of its inputs come. Raises FixRequest TS1841."""
    if own is None or own.facts().rows == 0:
        return
    raise FixRequest(
        "TS1841",
        f"model {_short(node)} has rows, and nothing says what they were read from",
        why=f"{target} was not made by following: all rows of its inputs would be added to those that are there",
        fix="run the model once with --full-refresh",
    )


def _mark(source: str) -> str:
    return _LEFT + source.removeprefix(TABLE_SOURCE)


def _short(node: str) -> str:
    return node.rsplit(".", maxsplit=1)[-1]
