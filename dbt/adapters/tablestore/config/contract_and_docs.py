"""What an enforced contract asks of the rows, and what persist_docs asks of the table.

CHANGE     the keys of a contract
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def _kind(constraint: Mapping[str, Any]) -> str:
    kind = constraint.get("type")
    return str(getattr(kind, "value", kind))


def _check(constraint: Mapping[str, Any], where: str, index: int) -> tuple[str, str] | None:
    expression = constraint.get("expression")
    if _kind(constraint) != "check" or not expression:
        return None
    return str(constraint.get("name") or f"{where}_check_{index}"), str(expression)


def read_contract(model: Mapping[str, Any]) -> Contract:
    """Constraints of columns and of the model; foreign keys are documentation only. Raises TS1809, TS1834."""
    if not ((model.get("config") or {}).get("contract") or {}).get("enforced"):
        return Contract()
    columns = {str(name): column for name, column in (model.get("columns") or {}).items()}
    _refuse_custom(str(model.get("name")), (model, *columns.values()))
    key: list[str] = []
    not_null: list[str] = []
    checks: list[tuple[str, str] | None] = []
    for name, column in columns.items():
        for index, constraint in enumerate(column.get("constraints") or (), start=1):
            kind = _kind(constraint)
            key += [name] if kind == "primary_key" else []
            not_null += [name] if kind in ("not_null", "primary_key") else []
            checks.append(_check(constraint, name, index))
    for index, constraint in enumerate(model.get("constraints") or (), start=1):
        named = [str(column) for column in constraint.get("columns") or ()]
        key += named if _kind(constraint) == "primary_key" else []
        not_null += named if _kind(constraint) in ("not_null", "primary_key") else []
        checks.append(_check(constraint, str(model.get("name")), index))
    return Contract(
        columns=tuple((name, str(column.get("data_type") or "")) for name, column in columns.items()),
        primary_key=_once(key),
        not_null=_once(not_null),
        checks=tuple(check for check in checks if check is not None),
        unique=_read_unique(str(model.get("name")), model.get("constraints") or (), columns),
    )


def _read_unique(
    name: str, of_model: Iterable[Mapping[str, Any]], columns: Mapping[str, Mapping[str, Any]]
) -> tuple[tuple[str, ...], ...]:
    """Column by column, then those of the model. Raises FixRequest TS1809 for one that names no column."""
    found: list[tuple[str, ...]] = [
        (column,)
        for column, said in columns.items()
        for one in said.get("constraints") or ()
        if _kind(one) == "unique"
    ]
    found += [
        tuple(str(column) for column in one.get("columns") or ())
        for one in of_model
        if _kind(one) == "unique"
    ]
    if () in found:
        raise FixRequest(
            "TS1809",
            f"model {name} has a unique constraint without columns",
            why="nothing says which values must not repeat; an expression is not read",
            fix="name its columns: {type: unique, columns: [...]}",
        )
    return tuple(dict.fromkeys(_once(one) for one in found))


def _refuse_custom(name: str, owners: Iterable[Mapping[str, Any]]) -> None:
    """A custom constraint is SQL of some database's DDL; left out silently it would promise what nobody checks."""
    for constraint in (one for owner in owners for one in owner.get("constraints") or ()):
        if _kind(constraint) == "custom":
            raise Unsupported(
                "TS1834",
                f"model {name} has a constraint of type custom",
                why=f"tables have nothing that could enforce {str(constraint.get('expression'))!r}",
                fix="write it as type: check with a condition, or as a data test",
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
