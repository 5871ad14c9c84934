"""server.properties of the development broker."""

from __future__ import annotations

from pathlib import Path

from tablestore_engine.devservers.broker_properties import Ports, server_properties


def _values(ports: Ports) -> dict[str, str]:
    lines = server_properties(ports, Path("/data"), None).splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_clients_are_told_the_advertised_port() -> None:
    """They are sent to it; the broker listens where it did, and does not talk to itself by way of it."""
    values = _values(Ports(client=1, controller=2, internal=3, advertised=9))
    assert values["advertised.listeners"] == "CLIENT://127.0.0.1:9,INTERNAL://127.0.0.1:3"
    assert values["listeners"].startswith("CLIENT://127.0.0.1:1,INTERNAL://127.0.0.1:3,")
    assert values["inter.broker.listener.name"] == "INTERNAL"


def test_without_one_clients_are_told_where_it_listens() -> None:
    """The plain broker is as ever."""
    values = _values(Ports(client=1, controller=2, internal=3))
    assert values["advertised.listeners"] == "PLAINTEXT://127.0.0.1:1"
    assert ":3" not in values["listeners"]
