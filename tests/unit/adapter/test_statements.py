"""Cutting a text into statements, and values into SQL."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pytest

from dbt.adapters.tablestore.connections import render_literal
from dbt.adapters.tablestore.statements import split_statements


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("select 1", ("select 1",)),
        ("select 1;", ("select 1",)),
        ("a; b ;\n c", ("a", "b", "c")),
        ("select ';' as `x;y`, \";\" -- ; no\n; b", ("select ';' as `x;y`, \";\" -- ; no", "b")),
        ("/* a;b */ select 1 /* c */; -- end;", ("/* a;b */ select 1 /* c */",)),
        ("select 'it\\'s; here'; b", ("select 'it\\'s; here'", "b")),
        ("commit;", ()),
        ("/* comment */ begin; delete from t; COMMIT", ("delete from t",)),
        ("", ()),
        ("select 4/2 - 1", ("select 4/2 - 1",)),
    ],
)
def test_semicolons_end_statements_only_outside_quotes_and_comments(
    text: str, statements: tuple[str, ...]
) -> None:
    """Hooks of several statements run one by one; transactions, which do not exist here, are left out."""
    assert split_statements(text) == statements


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (9007199254740993, "9007199254740993"),
        (Decimal(9007199254740993), "9007199254740993"),
        (Decimal("0.10"), "0.10BD"),
        (0.5, "0.5D"),
        ("O'Brien \\ 100%", "'O\\'Brien \\\\ 100%'"),
        (datetime(2026, 1, 31, 14, 0), "'2026-01-31 14:00:00'"),  # noqa: DTZ001 - agate's are naive
    ],
)
def test_bound_values_are_exact(value: object, text: str) -> None:
    """What dbt binds becomes SQL without losing anything."""
    assert render_literal(value) == text
