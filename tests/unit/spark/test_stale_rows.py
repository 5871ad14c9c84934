"""What over totals would leave rows behind when totals are put as they change: told from the text of Spark's plan."""

from __future__ import annotations

import pytest

from tablestore_engine.spark.stream_outline import read_stale

STREAM = "~StreamingRelationV2 x"


def plan(*nodes: str) -> str:
    """A plan of one child each."""
    return "\n".join(
        f"{n:02d} {'   ' * max(0, n - 1)}{'+- ' if n else ''}{node}" for n, node in enumerate(nodes)
    )


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (["~Project [n#1]", "~Aggregate [a#1], [count(1)]", STREAM], None),
        (["~Aggregate [a#1], [count(1)]", "~Filter (a#1 > 1)", STREAM], None),
        (["~Filter (n#1 > 1)", "~Aggregate [a#1], [count(1)]", STREAM], "HAVING, or WHERE over an aggregate"),
        (
            ["~Project [x]", "~Filter (n#1 > 1)", "~SubqueryAlias s", "~Distinct", STREAM],
            "HAVING, or WHERE over",
        ),
        (["~Join Inner", "~Aggregate [a#1], [count(1)]", STREAM], "Join over an aggregate"),
        (["~Generate explode(x)", "~Aggregate [a#1], [count(1)]", STREAM], "Generate over an aggregate"),
        (["~Filter (n#1 > 1)", "Aggregate [a#1], [count(1)]", "Relation t parquet"], None),
        (["~SomethingNew x", "~Aggregate [a#1], [count(1)]", STREAM], "SomethingNew over an aggregate"),
    ],
)
def test_what_may_stand_over_totals(nodes: list[str], said: str | None) -> None:
    """Columns may be chosen; rows may not be dropped or multiplied. Totals of tables are no totals of streams."""
    found = read_stale(plan(*nodes))
    assert (found is None) if said is None else said in str(found)


def test_totals_behind_a_definition() -> None:
    """WITH t AS (…totals…) SELECT … FROM t WHERE …: found where the name is used."""
    text = "\n".join([
        "00 ~WithCTE",
        "01 :- ~CTERelationDef 3, false",
        "02 :  +- ~Aggregate [a#1], [count(1)]",
        f"03 :     +- {STREAM}",
        "04 +- ~Filter (n#1 > 1)",
        "05    +- ~CTERelationRef 3, true",
    ])  # fmt: skip
    assert read_stale(text) == "HAVING, or WHERE over an aggregate"
