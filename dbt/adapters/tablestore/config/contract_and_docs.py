"""What an enforced contract asks of the rows, and what persist_docs asks of the table.

CHANGE     the keys of a contract
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tablestore_engine.api import FixRequest, Unsupported


@dataclass(frozen=True)
class Contract:
    """`columns` are (name, type) as declared; `checks` are (name, condition); `unique` has sets of columns."""

    columns: tuple[tuple[str, str], ...] = ()
    primary_key: tuple[str, ...] = ()
    not_null: tuple[str, ...] = ()
    checks: tuple[tuple[str, str], ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class _Constraint:
    """`where`: the column or model that has it, as its `number`th; `columns`: that it is about."""

    kind: str
    where: str
    number: int
    columns: tuple[str, ...]
    said: Mapping[str, Any]


def _constraints(model: Mapping[str, Any], columns: Mapping[str, Mapping[str, Any]]) -> Iterator[_Constraint]:
    """Column by column, then those of the model."""
    owners = [*columns.items(), (str(model.get("name")), model)]
    for where, owner in owners:
        for number, one in enumerate(owner.get("constraints") or (), start=1):
            kind = str(getattr(one.get("type"), "value", one.get("type")))
            named = tuple(map(str, one.get("columns") or ())) if owner is model else (where,)
            yield _Constraint(kind, where, number, named, one)


def read_contract(model: Mapping[str, Any]) -> Contract:
    """Constraints of columns and of the model; foreign keys are documentation only. Raises TS1809, TS1834."""
    if not ((model.get("config") or {}).get("contract") or {}).get("enforced"):
        return Contract()
    columns = {str(name): column for name, column in (model.get("columns") or {}).items()}
    found = tuple(_constraints(model, columns))
    _refuse(str(model.get("name")), found)

    def named(*kinds: str) -> tuple[str, ...]:
        return _once(name for one in found if one.kind in kinds for name in one.columns)

    return Contract(
        columns=tuple((name, str(column.get("data_type") or "")) for name, column in columns.items()),
        primary_key=named("primary_key"),
        not_null=named("not_null", "primary_key"),
        checks=tuple(
            (str(one.said.get("name") or f"{one.where}_check_{one.number}"), str(one.said["expression"]))
            for one in found
            if one.kind == "check" and one.said.get("expression")
        ),
        unique=tuple(dict.fromkeys(_once(one.columns) for one in found if one.kind == "unique")),
    )


def _refuse(name: str, found: Iterable[_Constraint]) -> None:
    """A custom constraint is SQL of some database's DDL; left out silently it would promise what nobody checks."""
    for one in found:
        if one.kind == "custom":
            raise Unsupported(
                "TS1834",
                f"model {name} has a constraint of type custom",
                why=f"tables have nothing that could enforce {str(one.said.get('expression'))!r}",
                fix="write it as type: check with a condition, or as a data test",
            )
        if one.kind == "unique" and not one.columns:
            raise FixRequest(
                "TS1809",
                f"model {name} has a unique constraint without columns",
                why="nothing says which values must not repeat; an expression is not read",
                fix="name its columns: {type: unique, columns: [...]}",
            )


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip("`") for name in names))


def read_comments(model: Mapping[str, Any]) -> tuple[str | None, dict[str, str]]:
    """(None, {}) unless persist_docs asks for relation or columns.

    Columns with `quote: true` are compared with case, which needs the table's own names: the macro does them later.
    """
    wanted = (model.get("config") or {}).get("persist_docs") or {}
    comment = str(model.get("description") or "") if wanted.get("relation") else ""
    columns = (model.get("columns") or {}) if wanted.get("columns") else {}
    described = {
        str(name): str(column["description"])
        for name, column in columns.items()
        if column.get("description") and not column.get("quote")
    }
    return comment or None, described
