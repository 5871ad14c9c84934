"""What happens to a table: steps that every kind of table goes through, the same for Java and for us."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from integration_tests.interop.oracle import Kinded
from integration_tests.interop.sample_data import make_rows
from integration_tests.interop.schemas import Column, Schema, Type


@dataclass(frozen=True)
class Step:
    """One commit; exactly one of the fields is set, and `alter` with `schema`.

    `upkeep` is 'tag', 'expire' or 'branch' (matrix/played.py); the changes of a branch are committed into it.
    """

    changes: tuple[Kinded, ...] = ()
    overwrite: tuple[Mapping[str, Any], ...] | None = None
    partition: Mapping[str, Any] | str | None = None
    compact: bool = False
    schema: Schema | None = None
    alter: tuple[tuple[Any, ...], ...] = ()
    upkeep: str = ""


def keyed_steps(
    schema: Schema, *, seed: int, small: int = 6, home: Mapping[str, Any] | None = None
) -> list[Step]:
    """`home` gives the partition column and its values: a key always lives in the same one."""

    def rows(keys: Iterable[int], round_number: int) -> list[dict[str, Any]]:
        return _rows(schema, list(keys), seed * 100 + round_number, home)

    deleted = [("-D", row) for row in rows(range(0, 40, 5), 2)]
    steps = [
        Step(tuple(("+I", row) for row in rows(range(40), 1))),
        Step(tuple(("+U", row) for row in rows([*range(20, 40), *range(50, 60)], 2))),
        Step((*deleted, *(("+I", row) for row in rows((60, 61), 3)), ("-D", rows((999,), 3)[0]))),
        Step(tuple(("+I", row) for row in rows((0, 5, 62), 4))),
    ]
    for number in range(small):
        keys = [(number * 7 + offset) % 64 for offset in (0, 3, 11)]
        gone = (number * 5 + 2) % 64
        steps.append(
            Step(
                (
                    *(("+U", row) for row in rows(keys, 10 + number) if row["id"] != gone),
                    ("-D", rows([gone], 1)[0]),
                )
            )
        )
    return steps


def append_steps(schema: Schema, *, seed: int, home: Mapping[str, Any] | None = None) -> list[Step]:
    """Five appends, the last one repeating rows (an append table keeps both)."""
    parts = [range(30), range(30, 34), range(34, 36), range(100, 140), range(4)]
    return [
        Step(tuple(("+I", row) for row in _rows(schema, list(keys), seed * 100 + n, home)))
        for n, keys in enumerate(parts)
    ]


def evolving_steps(*, keyed: bool, options: Mapping[str, str]) -> tuple[Schema, list[Step]]:
    """A table of four columns whose schema changes between its commits."""
    columns: dict[str, Type] = {
        "id": "BIGINT",
        "small": "INT",
        "text": "STRING",
        "ratio": "FLOAT",
        "gone": "INT",
    }
    listed = tuple(Column(number, name, wanted) for number, (name, wanted) in enumerate(columns.items()))
    first = Schema(listed, ("id",) if keyed else (), (), options)
    added = replace(first, columns=(*listed, Column(5, "extra", "DECIMAL(10, 2)")))
    renamed = _change(added, 2, name="label")
    dropped = replace(renamed, columns=tuple(column for column in renamed.columns if column.id != 4))
    widened = _change(_change(dropped, 1, type="BIGINT"), 3, type="DOUBLE")

    def write(schema: Schema, keys: Iterable[int], seed: int) -> Step:
        return Step(tuple(("+I", row) for row in _rows(schema, list(keys), seed, None)))

    return first, [
        write(first, range(20), 1),
        Step(schema=added, alter=(("add", "extra", "DECIMAL(10, 2)"),)),
        write(added, range(10, 25), 2),
        Step(schema=renamed, alter=(("rename", "text", "label"),)),
        write(renamed, range(20, 28), 3),
        Step(schema=dropped, alter=(("drop", "gone"),)),
        write(dropped, range(26, 30), 4),
        Step(schema=widened, alter=(("type", "small", "BIGINT"), ("type", "ratio", "DOUBLE"))),
        write(widened, range(4, 34, 3), 5),
        Step(compact=True),
        write(widened, range(30, 36), 6),
    ]


def _change(schema: Schema, column_id: int, **fields: Any) -> Schema:
    changed = tuple(replace(c, **fields) if c.id == column_id else c for c in schema.columns)
    return replace(schema, columns=changed)


def _rows(schema: Schema, keys: list[int], seed: int, home: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    columns = {column.name: column.type for column in schema.columns}
    rows = make_rows(columns, keys, seed=seed, required=schema.keys)
    for name, values in (home or {}).items():
        for row in rows:
            row[name] = values[row["id"] % len(values)]
    return rows
