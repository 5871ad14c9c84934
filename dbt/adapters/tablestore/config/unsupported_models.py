"""Kinds of functions that dbt knows and Spark does not store: refused by name, before anything runs."""

from __future__ import annotations

from typing import NoReturn

from tablestore_engine.api import Unsupported


def refuse_function(name: str, what: str) -> NoReturn:
    """Always raises TS1884; `what` is dbt's word for the kind of function."""
    raise Unsupported(
        "TS1884",
        f"function {name}: {what} is not supported",
        why="Spark stores SQL functions only: one expression or query per call, no aggregates, no other language",
        fix="write the function in SQL (functions/<name>.sql), or write the expression as a macro",
    )
