"""Which unique constraints a query has to look at, and what it asks. No Spark, no dbt."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dbt.adapters.tablestore.config.contract_and_docs import Contract
from dbt.adapters.tablestore.config.model_config import TableSettings
from dbt.adapters.tablestore.config.streaming_keys import Streaming
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.write.model_commits import (
    GATE,
    repeated_values,
    unimplied,
    violation,
    why_unchecked,
)
from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.spi import Staged, stage_properties

from .staging_run import SPEC, Run, latest, staged


def settings(*unique: tuple[str, ...], key: tuple[str, ...] = (), **more: object) -> ModelSettings:
    """Of a model with this key and these constraints."""
    table = TableSettings(materialized="table", primary_key=key, **more)  # type: ignore[arg-type]
    return ModelSettings("model.p.m", table, Contract(unique=unique), None, ())


@pytest.mark.parametrize(
    ("key", "left"),
    [
        ((), [("id",), ("id", "mail")]),
        (("id",), []),
        (("ID",), []),
        (("mail", "id"), [("id",)]),
        (("day",), [("id",), ("id", "mail")]),
    ],
)
def test_a_set_that_contains_the_key_is_enforced_by_it(
    key: tuple[str, ...], left: list[tuple[str, ...]]
) -> None:
    """Names have no case; a part of the key is not enforced by it."""
    assert list(unimplied(settings(("id",), ("id", "mail"), ("id",), key=key))) == left


def test_models_of_many_commits_are_not_checked() -> None:
    """Each of their commits would be followed by a query over the whole table."""
    assert why_unchecked(settings(("id",))) is None
    assert why_unchecked(settings(("id",), strategy="microbatch")) == "a microbatch model"
    assert why_unchecked(settings(("id",), streaming=Streaming())) == "a streaming model"


def test_the_query_leaves_out_nulls_and_reads_the_staged_rows() -> None:
    """NULLs are not equal; names are quoted."""
    assert repeated_values("demo.m", "unique_x", ("id", "a`b")) == (
        "select `id`, `a``b`, count(*) from `demo__at_branch_unique_x`.`m` "
        "where `id` is not null and `a``b` is not null group by `id`, `a``b` "
        "having count(*) > 1 order by count(*) desc limit 5"
    )


def test_the_error_shows_values() -> None:
    """Column by column, with the number of rows."""
    error = violation("demo.m", ("id", "mail"), [(1, "a", 3), (2, "b", 2)])
    assert error.code == "TS1808"
    assert "id = 1, mail = 'a' in 3 rows; id = 2, mail = 'b' in 2 rows" in str(error)


def test_rows_that_nobody_looked_at_are_not_published(engine: Engine) -> None:
    """A run was killed before the query: later runs do not publish its rows, and the next build drops them."""
    left = Staged("demo.orders", "unique_dbt_old", "", 0, "model.p.orders", "auto", (GATE,))
    spec = WriteSpec(table=SPEC, stage=left.name, properties=stage_properties(left))
    engine.write("demo.orders", pa.table({"id": [1]}), spec)
    run = Run(engine, "new")
    run.coordinator.publish_asked(frozenset(), ["demo"])
    run.build("other", selected=("model.p.other",))
    run.test("relation")
    assert latest(engine, "orders") is None
    assert staged(engine) == ["demo.orders"]
    run.build("orders", 2, selected=("model.p.orders",))
    assert latest(engine, "orders") == 1
    assert staged(engine) == []
