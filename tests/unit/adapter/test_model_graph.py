"""Questions to dbt's graph."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.tablestore.model_graph import (
    check_topics,
    find_topic,
    list_ancestors,
    list_gates,
    list_sources,
)
from tablestore_engine.errors import FixRequest


def node(kind: str, *parents: str, **config: Any) -> dict[str, Any]:
    """A node as it stands in graph.nodes."""
    return {"resource_type": kind, "depends_on": {"nodes": list(parents)}, "config": config}


NODES = {
    "model.p.a": node("model"),
    "model.p.view": node("model", "model.p.a", materialized="view"),
    "model.p.b": node("model", "model.p.view", "source.p.s.t"),
    "test.p.unique_a": node("test", "model.p.a", severity="error"),
    "test.p.soft_a": node("test", "model.p.a", severity="WARN"),
    "test.p.rel": node("test", "model.p.b", "model.p.a"),
    "unit_test.p.u": node("unit_test", "model.p.a"),
}


def test_gates_are_data_tests_that_can_fail() -> None:
    """Warnings and unit tests hold nothing back; a relationships test holds both its models."""
    assert list_gates(NODES, "model.p.a") == ("test.p.rel", "test.p.unique_a")
    assert list_gates(NODES, "model.p.b") == ("test.p.rel",)


def test_gates_of_this_invocation_are_the_selected_ones() -> None:
    """What is not run cannot be waited for."""
    assert list_gates(NODES, "model.p.a", ["test.p.unique_a", "model.p.a"]) == ("test.p.unique_a",)
    assert list_gates(NODES, "model.p.a", []) == ()


def test_ancestors_go_through_views() -> None:
    """A view is no wall: its rows come from the tables below."""
    assert list_ancestors(NODES, "model.p.b") == {"model.p.view", "model.p.a", "source.p.s.t"}


def test_sources_of_a_test_are_found_through_functions() -> None:
    """What a function reads, as what a view reads; what lies above a table does not count."""
    nodes = NODES | {
        "function.p.f": node("function", "model.p.view", materialized="function"),
        "test.p.calls": node("test", "function.p.f", "model.p.b"),
    }
    assert list_sources(nodes, "test.p.calls") == {"function.p.f", "model.p.view", "model.p.a", "model.p.b"}


@pytest.mark.parametrize(
    "config",
    [
        {"kafka_topic": "t"},
        {"kafka": {"topic": "t"}},
        {"table_properties": {"kafka.topic": "t"}},
        {"tblproperties": {"kafka.topic": "t"}},
        {"meta": {"tablestore": {"kafka_topic": "t"}}},
    ],
)
def test_a_topic_belongs_to_one_model(config: dict[str, Any]) -> None:
    """However the other model names the topic, the second one is refused."""
    nodes = {"model.p.a": node("model", **config), "model.p.b": node("model", kafka_topic="t")}
    assert find_topic(config) == "t"
    with pytest.raises(FixRequest) as caught:
        check_topics(nodes, "model.p.b", "t")
    assert caught.value.code == "TS1817"
    check_topics(nodes, "model.p.b", "other")


def test_a_marker_topic_is_no_data_topic() -> None:
    """t__snapshots is taken by the table of t."""
    nodes = {
        "model.p.a": node("model", kafka_topic="t"),
        "model.p.b": node("model", kafka_topic="t__snapshots"),
    }
    for model, topic in (("model.p.a", "t"), ("model.p.b", "t__snapshots")):
        with pytest.raises(FixRequest):
            check_topics(nodes, model, topic)
