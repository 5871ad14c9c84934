"""Questions to dbt's graph: who tests a model, what it is built from, who else uses its topic.

INVARIANT  pure: `nodes` is graph.nodes and graph.functions, unique id -> node as a mapping.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tablestore_engine.api import FixRequest

Nodes = Mapping[str, Mapping[str, Any]]


def nested(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a config says below `meta.tablestore`; empty where that is no mapping."""
    meta = config.get("meta")
    found = meta.get("tablestore") if isinstance(meta, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _parents(node: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple((node.get("depends_on") or {}).get("nodes") or ())


def _is_gate(node: Mapping[str, Any], model_id: str) -> bool:
    """A data test of the model whose failure is an error; warnings never hold a snapshot back."""
    if node.get("resource_type") != "test" or model_id not in _parents(node):
        return False
    severity = str((node.get("config") or {}).get("severity") or "error")
    return severity.lower() == "error"


def list_gates(nodes: Nodes, model_id: str, selected: Collection[str] | None = None) -> tuple[str, ...]:
    """Gating tests of the model, sorted; only those among `selected` where it is given."""
    return tuple(
        sorted(
            test_id
            for test_id, node in nodes.items()
            if _is_gate(node, model_id) and (selected is None or test_id in selected)
        )
    )


def gates_of(
    policy: str, nodes: Nodes, model_id: str, selected: Collection[str] | None = None
) -> tuple[str, ...]:
    """What a model with this `publish` waits for."""
    if policy in ("auto", "all_or_nothing"):
        return list_gates(nodes, model_id, selected)
    return list_gates(nodes, model_id) if policy in ("on_tests", "manual") else ()


def list_ancestors(nodes: Nodes, model_id: str, through: Collection[str] | None = None) -> frozenset[str]:
    """All nodes above the model; above those that are not materialized as `through` says no further ones."""
    found: set[str] = set()
    open_ids = list(_parents(nodes.get(model_id, {})))
    while open_ids:
        above = open_ids.pop()
        if above not in found:
            found.add(above)
            node = nodes.get(above, {})
            if through is None or (node.get("config") or {}).get("materialized") in through:
                open_ids.extend(_parents(node))
    return frozenset(found)


def list_sources(nodes: Nodes, node_id: str) -> frozenset[str]:
    """What lies right above a node, with what lies above views, ephemerals and functions."""
    return list_ancestors(nodes, node_id, ("view", "ephemeral", "function"))


def built_schemas(nodes: Mapping[str, Any], own: str) -> tuple[str, ...]:
    """Schemas of models, seeds and snapshots, and the target's `own`; sorted. `nodes` are dbt's objects here."""
    built = (one for one in nodes.values() if str(one.resource_type) in ("model", "seed", "snapshot"))
    return tuple(sorted({str(one.schema) for one in built} | {own}))


def find_topic(config: Mapping[str, Any]) -> str | None:
    """The Kafka topic a model's config names, in any of the places it may stand."""
    for source in (config, nested(config)):
        properties = source.get("table_properties") or source.get("tblproperties") or {}
        kafka = source.get("kafka") or {}
        topic = source.get("kafka_topic") or kafka.get("topic") or properties.get("kafka.topic")
        if topic:
            return str(topic)
    return None


def check_topics(nodes: Nodes, model_id: str, topic: str | None) -> None:
    """Refuse a topic that another model of the project writes, or its marker topic. Raises TS1817."""
    if topic is None:
        return
    for other_id, node in nodes.items():
        other = find_topic(node.get("config") or {}) if node.get("resource_type") == "model" else None
        if other_id == model_id or other is None:
            continue
        if other in (topic, f"{topic}__snapshots") or topic == f"{other}__snapshots":
            raise FixRequest(
                "TS1817",
                f"models {model_id} and {other_id} share the topic {topic!r}",
                why="each table needs its own topic and marker topic, else readers mix two tables",
                fix="give one of them another kafka_topic",
            )
