"""Fixtures of dbt-tests-adapter whose SQL is Postgres', said in Spark's.

WHY        the originals keep their SQL in module globals and read them in the test functions. Translating the globals
           leaves the test functions and what they check untouched.
INVARIANT  types, casts, quotes and the database in front of a name change; values and checks do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

_WORDS = (
    (r"\{database\}\.", ""),  # Spark has no databases above schemas
    (r"\{\{\s*target\.database\s*\}\}\.", ""),
    (r"\b(VARCHAR|TEXT|varchar|text)(\(\d+\))?(?=\s*(,|\n|\)|;|default\b))", "string"),
    (r"::\s*(text|TEXT)\b", "::string"),
    (r"\bTIMESTAMP WITH(OUT)? TIME ZONE\b", "TIMESTAMP"),
)


def in_spark(text: str) -> str:
    """Types, casts and names of Postgres as Spark writes them."""
    for theirs, ours in _WORDS:
        text = re.sub(theirs, ours, text)
    return text


def _translate(value: Any) -> Any:
    if isinstance(value, str):
        return in_spark(value)
    if isinstance(value, list):
        return [_translate(item) for item in value]
    return value


def dialect(*modules: ModuleType) -> Any:
    """The fixture for a class body, under the name spark_sql."""

    @pytest.fixture(scope="class", autouse=True)
    def spark_sql(_self: object) -> Iterator[None]:
        """SQL texts of the original in Spark's dialect."""
        with pytest.MonkeyPatch.context() as patch:
            for module in modules:
                for name, value in list(vars(module).items()):
                    if isinstance(value, str | list) and not name.startswith("__"):
                        patch.setattr(module, name, _translate(value))
            yield

    return spark_sql
