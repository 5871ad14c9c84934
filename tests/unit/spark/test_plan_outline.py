"""read_outline: what a plan's text says of our tables, and where it is not to be trusted."""

from __future__ import annotations

import pytest

from tablestore_engine.spark.plan_outline import Node, read_outline

_ALIVE = "Filter (cast(getbit(get(scalar-subquery#20 [], cast((__tablestore_word#31 + 1) as int))), 2) as int) = 0)"
_HIDDEN = "Relation spark_catalog.tablestore_hidden."


def _numbered(*lines: str) -> str:
    return "\n".join(f"{at:02d} {line}" for at, line in enumerate(lines))


def test_a_reading_has_its_filter_and_its_words() -> None:
    """Of two readings in a union one has dead rows: numbers and texts of its nodes are its own."""
    outline = read_outline(
        _numbered(
            "Union false, false",
            f":- {_ALIVE}",
            f":  :  +- {_HIDDEN}m_ab_0d[m#5] parquet",
            ":  +- SubqueryAlias t",
            f":     +- {_HIDDEN}f_ab_0d[id#7L,x#8] parquet",
            "+- SubqueryAlias t",
            f"   +- {_HIDDEN}f_ab_0[id#9L,x#10] parquet",
        )
    )
    first, second = outline.readings
    assert (first.table, first.relation.number, first.in_subquery) == ("f_ab_0d", 4, False)
    assert first.columns.startswith("id#7L,")
    assert first.alive == Node(1, _ALIVE)
    assert first.words == Node(2, f"{_HIDDEN}m_ab_0d[m#5] parquet")
    assert (second.table, second.relation.number, second.alive, second.words) == ("f_ab_0", 6, None, None)
    assert not outline.asks


def test_what_lies_in_a_subquery_is_said_to() -> None:
    """A subquery's lines lie two deeper than the node that has it; after them the plan goes on outside."""
    outline = read_outline(
        _numbered(
            "Project [scalar-subquery#1 [] AS a#2]",
            ":  +- Aggregate [max(id#3L)]",
            ":     +- Filter (id#3L > 5)",
            f":        +- {_HIDDEN}f_a_0[id#3L] parquet",
            f"+- {_HIDDEN}f_a_0[id#4L] parquet",
        )
    )
    assert [one.in_subquery for one in outline.readings] == [True, False]
    assert not outline.asks


@pytest.mark.parametrize(
    ("node", "asks"),
    [
        ("Filter (id#1L = 5)", True),
        ("Filter (name#1 = cast(b#2 as string))", True),
        ("Filter isnull(name#1)", True),
        ("Join Inner, ((id#1L = id#2L) AND (day#3 = 2024-01-01))", True),
        ("Join Inner, ((id#1L = id#2L) AND (a#3 <=> b#4L))", False),
        ("Join Cross", False),
        ("LateralJoin lateral-subquery#1 [], Inner", True),
        ("Filter (a#1 = b#2)", False),
        ("Aggregate [id#1L], [id#1L, count(1) AS n#2L]", False),
    ],
)
def test_only_conditions_with_more_than_columns_ask(node: str, asks: bool) -> None:
    """What compares columns with each other leaves out no file."""
    assert read_outline(_numbered(node, f"+- {_HIDDEN}f_a_0[id#4L] parquet")).asks == asks
