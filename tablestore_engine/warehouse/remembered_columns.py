"""The columns that a query's remembered rows were made of, in a file beside them.

Rule       Spark compares what it remembers by place and type, not by name. So a column that took the place of another
           one of its type would get the values of that: which is told here. Whatever changes types or the number of
           columns Spark tells itself (TS1456), and a column that the query does not read changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tablestore_engine.catalog.resolved_names import Meaning, ResolvedTable
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.type_text import type_to_json
from tablestore_engine.stream.change_source import ROW_KIND, SNAPSHOT_ID

_FILE = "tablestore-columns.json"  # beside Spark's own files of a checkpoint: part of what a state is on disk


@dataclass(frozen=True)
class InputColumn:
    """`type`: JSON text, without NOT NULL at its end; of a nested one with ids and names inside."""

    id: int
    name: str
    type: str

    @property
    def is_nested(self) -> bool:
        """Spark does not compare the names inside."""
        return self.type.startswith("{")


@dataclass(frozen=True)
class InputColumns:
    """Table as the statement names it → columns."""

    tables: Mapping[str, tuple[InputColumn, ...]] = field(default_factory=dict)


def columns_of(
    meanings: Mapping[tuple[str, str], Meaning | None], streams: Collection[tuple[str, str]]
) -> InputColumns:
    """`streams`: (database, name); of a table beside them nothing is remembered by its columns' ids."""
    names = {(database.lower(), name.lower()) for database, name in streams}
    return InputColumns({
        f"{database}.{name}": tuple(
            InputColumn(one.id, one.name.lower(), _type_text(type_to_json(one.type)))
            for one in found.schema.fields
            if one.name not in (ROW_KIND, SNAPSHOT_ID)  # of changes: behind the table's own, with the next ids
        )
        for (database, name), found in sorted(meanings.items())
        if isinstance(found, ResolvedTable) and (database, name) in names
    })  # fmt: skip


def write_columns(folder: Path, columns: InputColumns) -> None:
    found = {
        name: [[one.id, one.name, one.type] for one in fields] for name, fields in columns.tables.items()
    }
    (folder / _FILE).write_text(json.dumps(found))


def read_columns(folder: Path) -> InputColumns | None:
    """None: nobody has written any."""
    path = folder / _FILE
    if not path.exists():
        return None
    found = json.loads(path.read_text())
    return InputColumns({
        name: tuple(InputColumn(*one) for one in fields) for name, fields in found.items()
    })  # fmt: skip


def check_columns(before: InputColumns | None, now: InputColumns) -> None:
    """Raises FixRequest TS1457."""
    if before is None:
        return
    for name, fields in before.tables.items():
        why = find_mixup(fields, now.tables.get(name, fields))
        if why is not None:
            raise FixRequest(
                "TS1457",
                f"the query cannot resume with its state for {name}",
                why=why,
                fix="build the table again (a full refresh), or take the change of the columns back",
            )


def find_mixup(before: tuple[InputColumn, ...], now: tuple[InputColumn, ...]) -> str | None:
    """In words; None: each column is where it was, or the difference is one that Spark tells."""
    old, new = {one.id: one for one in before}, {one.id: one for one in now}
    numbers = {one.name: one.id for one in before}
    for one in now:
        if numbers.get(one.name, one.id) != one.id:
            return f"{one.name} is another column than the one that had this name"
        known = old.get(one.id)
        if known is not None and known.type != one.type and (known.is_nested or one.is_nested):
            return f"{one.name} has other fields inside"
    if [one.id for one in before if one.id in new] != [one.id for one in now if one.id in old]:
        return "its columns have another order"
    gone = {one.type: one.name for one in before if one.id not in new}
    for one in now:
        if one.id not in old and one.type in gone:
            return f"{gone[one.type]} has gone and {one.name}, of the same type, is new"
    return None


def _type_text(shape: str | dict[str, object]) -> str:
    return shape.removesuffix(" NOT NULL") if isinstance(shape, str) else json.dumps(shape)
