"""server.properties of the development broker."""

from __future__ import annotations

from pathlib import Path

from tablestore_engine.devservers.broker_properties import Advertised, Ports, server_properties


def _values(*nodes: Ports, number: int = 1) -> dict[str, str]:
    lines = server_properties(nodes, number, Path("/data"), None).splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_clients_are_told_the_advertised_port() -> None:
    """They are sent to it; the broker listens where it did, and does not talk to itself by way of it."""
    values = _values(Ports(client=1, controller=2, internal=3, advertised=Advertised(client=9)))
    advertised = "CLIENT://127.0.0.1:9,INTERNAL://127.0.0.1:3,CONTROLLER://127.0.0.1:2"
    assert values["advertised.listeners"] == advertised
    assert values["listeners"].startswith("CLIENT://127.0.0.1:1,INTERNAL://127.0.0.1:3,")
    assert values["inter.broker.listener.name"] == "INTERNAL"


def test_without_one_clients_are_told_where_it_listens() -> None:
    """The plain broker is as ever."""
    values = _values(Ports(client=1, controller=2, internal=3))
    assert values["advertised.listeners"] == "PLAINTEXT://127.0.0.1:1"
    assert ":3" not in values["listeners"]


def test_one_node_needs_no_replica() -> None:
    """Topics of the development broker of one node have one replica, which is enough for a row to count."""
    values = _values(Ports(client=1, controller=2, internal=3))
    assert {key: values.get(key) for key in _REPLICAS} == dict.fromkeys(_REPLICAS, "1") | _NOT_SET


_REPLICAS = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "default.replication.factor",
    "min.insync.replicas",
)
_NOT_SET = {"default.replication.factor": None, "min.insync.replicas": None}


def test_three_nodes_find_each_other_and_replicate() -> None:
    """Each names the three advertised controllers, has its own number, and wants two of three replicas in sync."""
    nodes = [
        Ports(client=base, controller=base + 1, internal=base + 2, advertised=Advertised(controller=base + 9))
        for base in (10, 20, 30)
    ]
    for number in (1, 2, 3):
        values = _values(*nodes, number=number)
        assert values["node.id"] == str(number)
        controllers = "127.0.0.1:19,127.0.0.1:29,127.0.0.1:39"
        assert values["controller.quorum.bootstrap.servers"] == controllers
        assert values["listeners"].endswith(f"CONTROLLER://127.0.0.1:{10 * number + 1}")
        assert [values[key] for key in _REPLICAS] == ["3", "3", "2", "3", "2"]
        assert values["unclean.leader.election.enable"] == "false"
