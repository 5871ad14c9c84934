"""Bounds of a batch in SQL text: what becomes a placeholder, and what stays."""

from __future__ import annotations

import pytest

from tablestore_engine.sql.interval_bounds import HIGH, LOW, with_placeholders

S, E = "2026-01-01 00:00:00+00:00", "2026-01-02 00:00:00+00:00"
FILTER = "(select * from demo.feed where at >= '{}' and at < '{}')"


def test_filters_of_dbt_become_placeholders() -> None:
    """Each of them; two batches of one model have one general text."""
    text = f"select * from {FILTER} a join {FILTER} b using (id)"
    made = with_placeholders(text.format(S, E, S, E), S, E)
    assert made == text.format(LOW, HIGH, LOW, HIGH)
    later = ("2026-01-02 00:00:00+00:00", "2026-01-03 00:00:00+00:00")
    assert with_placeholders(text.format(*later, *later), *later) == made


@pytest.mark.parametrize(
    "other",
    [
        f"'{S}' as day",
        f"at = '{S}'",
        f"at between '{S}' and '{E}'",
        f"\"at >= '{S}'\" as text",
        f"1 as `at >= '{S}'`",
        f"1 /* at >= '{S}' */",
        f"at <= '{S}'",
        f"at > '{E}'",
    ],
)
def test_other_literals_of_the_bounds_stay(other: str) -> None:
    """Values, other comparisons, texts, names and comments: their batch has a text of its own."""
    made = with_placeholders(f"select {other} from {FILTER.format(S, E)}", S, E)
    assert made == f"select {other} from {FILTER.format(LOW, HIGH)}"


@pytest.mark.parametrize(
    "text",
    [
        "select * from demo.feed",
        f"select * from demo.feed where at >= '{S}'",
        f"select '{S}', '{E}' from demo.feed",
        f"select '{LOW}' from {FILTER.format(S, E)}",
    ],
)
def test_text_without_an_interval_has_no_general_one(text: str) -> None:
    """No filter, half of one, the bounds as values alone, or a placeholder that was there before."""
    assert with_placeholders(text, S, E) is None
