"""Columns of a stream or of changes(), and fields in them, whose name another one has taken: rows that a model has of
the former are no longer its rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.api import Engine, FixRequest, TableVersion
from tablestore_engine.spi import ChangesInput


def check_columns(
    engine: Engine,
    node: str,
    query: str,
    table: str,
    found: ChangesInput,
    versions: Mapping[str, TableVersion],
) -> None:
    """No changelog says that all rows have other values by it. Raises FixRequest TS2011 if the query reads one."""
    if not found.exchanged:
        return
    with engine.changed_keys.trace(query, versions=versions) as traced:
        used = {one.lower() for each in traced.occurrences for one in each.columns.values()}
    column = next((one for one in found.exchanged if not used or _is_in(one.lower(), used)), None)
    if column is None:
        return
    raise FixRequest(
        "TS2011",
        f"model {node.rsplit('.', maxsplit=1)[-1]} cannot resume: {column} of {table} is another column than before",
        why="it was dropped and added again, or columns took each other's names: all rows of the input have other "
        "values, and no change of a row says so",
        fix="run the model once with --full-refresh",
    )


def _is_in(path: str, columns: set[str]) -> bool:
    """Whether a column, or a field in it, is one of these; a column's own name may have a dot in it."""
    return any(path == one or path.startswith(f"{one}.") for one in columns)
