"""The boundary to dbt's macros: values become typed contexts, or an error names the value that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from jinja2 import Undefined

from dbt.adapters.tablestore.plan import run_context
from dbt.adapters.tablestore.plan.run_context import (
    BatchInterval,
    InputContext,
    PlanContext,
    RunContext,
    SnapshotQuery,
)
from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.errors import FixRequest

ORDERS = TablestoreRelation.create(schema="demo", identifier="orders")
DAY = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
BATCH = {"id": "20260101", "event_time_start": DAY[0], "event_time_end": DAY[1]}
NODES = {"model.p.orders": {"resource_type": "model"}}
MODEL = {"unique_id": "model.p.orders"}
Read = Callable[[Mapping[str, object]], object]

RUN = {"existing": None, "nodes": NODES, "selected": ["model.p.orders"], "invocation": "i1"}
SOURCE = {
    "source": "select 1 as id",
    "text": "select 1 as id []",
    "key": ["id"],
    "view": "v",
    "restricted": "",
}
# what the macros in dbt/include pass
PASSED: list[tuple[Read, dict[str, Any]]] = [
    (
        run_context.read_plan,
        {
            "existing": ORDERS,
            "full_refresh": False,
            "batch": None,
            "event_time": "at",
            "compiled": "select 1",
        },
    ),
    (run_context.read_write, {**RUN, "batch": BATCH}),
    (run_context.read_snapshot, {**RUN, **SOURCE}),
    (run_context.read_in_place, {name: RUN[name] for name in ("nodes", "selected", "invocation")}),
    (run_context.read_seed, {**RUN, "column_types": {"id": "bigint"}, "quote_columns": False}),
    (run_context.read_changes, {"target": ORDERS, "model": MODEL, "full_refresh": True}),
    (run_context.read_stream, {"target": ORDERS, "model": MODEL, "nodes": NODES, "explained": None}),
]
IDS = [read.__name__ for read, _ in PASSED]


def refusal(read: Read, given: Mapping[str, object]) -> FixRequest:
    """The error of a call."""
    with pytest.raises(FixRequest) as caught:
        read(given)
    assert caught.value.code == "TS1889"
    return caught.value


def test_values_of_dbt_become_fields() -> None:
    """Mappings stay mappings, lists become tuples, dbt's batch becomes two instants."""
    assert run_context.read_plan(PASSED[0][1]) == PlanContext(ORDERS, False, None, "at", "select 1")
    assert run_context.read_write(PASSED[1][1]) == RunContext(
        "i1", NODES, ("model.p.orders",), None, BatchInterval(*DAY)
    )
    assert run_context.read_in_place(PASSED[3][1]) == RunContext("i1", NODES, ("model.p.orders",))
    seed = run_context.read_seed(PASSED[4][1])
    assert (seed.run, seed.column_types, seed.quote_columns) == (
        RunContext("i1", NODES, ("model.p.orders",)),
        {"id": "bigint"},
        False,
    )
    assert run_context.read_snapshot(PASSED[2][1]) == (
        seed.run,
        SnapshotQuery("select 1 as id", "select 1 as id []", ("id",), "v", ""),
    )
    assert run_context.read_changes(PASSED[5][1]) == InputContext(ORDERS, MODEL, full_refresh=True)
    explained = run_context.read_stream({**PASSED[6][1], "explained": str.upper}).explained
    assert explained is not None
    assert explained("a") == "A"


def test_context_is_frozen() -> None:
    """Nobody below the boundary changes it."""
    context = run_context.read_write(PASSED[1][1])
    with pytest.raises(FrozenInstanceError):
        context.invocation = "i2"  # type: ignore[misc]


@pytest.mark.parametrize(("read", "given"), PASSED, ids=IDS)
def test_missing_name_is_refused_by_name(read: Read, given: dict[str, Any]) -> None:
    """Each name of each call: none has a default."""
    for name in given:
        error = refusal(read, {other: value for other, value in given.items() if other != name})
        assert f"missing {name}" in error.why
        assert "adapter.tablestore_" in error.what


@pytest.mark.parametrize(("read", "given"), PASSED, ids=IDS)
def test_extra_name_is_refused_by_name(read: Read, given: dict[str, Any]) -> None:
    """A name with a typing error is missing and extra at once."""
    assert "extra exi5ting" in refusal(read, {**given, "exi5ting": None}).why
    first = next(iter(given))
    error = refusal(read, {f"{name}s" if name == first else name: value for name, value in given.items()})
    assert f"missing {first}; extra {first}s" in error.why


@pytest.mark.parametrize(("read", "given"), PASSED, ids=IDS)
def test_value_of_another_type_is_refused_by_name(read: Read, given: dict[str, Any]) -> None:
    """An undefined value of Jinja, and a number, are none of the types."""
    for name in given:
        for value in (Undefined(name=name), 7):
            error = refusal(read, {**given, name: value})
            assert repr(name) in error.what
            assert type(value).__name__ in error.why


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("selected", "model.p.orders"),
        ("selected", ["model.p.orders", 7]),
        ("selected", {"model.p.orders": 1}),
        ("nodes", None),
        ("nodes", [MODEL]),
        ("invocation", None),
        ("existing", "demo.orders"),
        ("batch", {"event_time_start": DAY[0]}),
        ("batch", {**BATCH, "event_time_end": "2026-01-02"}),
    ],
)
def test_value_of_a_write_that_nearly_fits_is_refused(name: str, value: object) -> None:
    """A text is no list of texts, and a batch has two times."""
    assert repr(name) in refusal(run_context.read_write, {**PASSED[1][1], name: value}).what


def test_values_that_nobody_set_are_accepted() -> None:
    """dbt gives none for config that is absent, and an empty batch outside microbatch runs."""
    given = {"existing": None, "full_refresh": None, "batch": {}, "event_time": None, "compiled": None}
    assert run_context.read_plan(given) == PlanContext()
    seed = run_context.read_seed({**PASSED[4][1], "column_types": None, "quote_columns": None})
    assert (seed.column_types, seed.quote_columns) == ({}, False)
    assert run_context.read_changes({**PASSED[5][1], "target": None}).target is None


def test_batch_of_dbt_is_read_as_an_object_too() -> None:
    """dbt's own class, which is no mapping."""

    @dataclass
    class Given:
        id: str
        event_time_start: datetime
        event_time_end: datetime

    context = run_context.read_write({**PASSED[1][1], "batch": Given("1", *DAY)})
    assert context.batch == BatchInterval(*DAY)
