"""Nodes of the development broker before any process: their folders, ports and clusters."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tablestore_engine.devservers import broker_node
from tablestore_engine.devservers.broker_node import (
    BrokerNode,
    choose_ports,
    count_nodes,
    format_nodes,
    nodes_of,
    write_ports,
)
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.outside_world import SYSTEM


@pytest.fixture
def formats(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str, tuple[str, ...]]]:
    """(node, cluster, arguments) of each format, which a fake tool writes like Kafka's."""
    made: list[tuple[int, str, tuple[str, ...]]] = []

    def run(_: object, node: BrokerNode, cluster_id: str, *how: str) -> None:
        if len(made) == fail_at.get("count", 99):
            raise FixRequest("TS1912", "-", why="-", fix="-")
        made.append((node.number, cluster_id, how))
        node.data.mkdir(parents=True)
        (node.data / "meta.properties").write_text("")

    fail_at: dict[str, int] = {}
    monkeypatch.setattr(broker_node, "_format", run)
    monkeypatch.setattr(broker_node, "_FAIL_AT", fail_at, raising=False)
    return made


def form(folder: Path, count: int) -> None:
    """What a start does."""
    nodes = nodes_of(folder, count)
    format_nodes(folder, nodes, choose_ports(folder, count, ()), ["java"], SYSTEM)


def test_one_node_lies_in_the_data_folder_itself(
    tmp_path: Path, formats: list[tuple[int, str, tuple[str, ...]]]
) -> None:
    """As ever: it is its own cluster, and a second start formats nothing."""
    assert count_nodes(tmp_path) is None
    form(tmp_path, 1)
    form(tmp_path, 1)
    assert [(number, how) for number, _, how in formats] == [(1, ("--standalone",))]
    assert count_nodes(tmp_path) == 1


def test_three_nodes_begin_as_one_cluster(
    tmp_path: Path, formats: list[tuple[int, str, tuple[str, ...]]]
) -> None:
    """All get the same cluster and the same three voters."""
    form(tmp_path, 3)
    assert [number for number, _, _ in formats] == [1, 2, 3]
    ((cluster, how),) = {(cluster, how) for _, cluster, how in formats}
    assert how[0] == "--initial-controllers"
    assert [one.split("@")[0] for one in how[1].split(",")] == ["1", "2", "3"]
    assert not cluster.startswith("-")
    assert count_nodes(tmp_path) == 3


def test_a_node_whose_data_is_gone_joins_later(
    tmp_path: Path, formats: list[tuple[int, str, tuple[str, ...]]]
) -> None:
    """It is formatted for the same cluster, and not as one of the first voters."""
    form(tmp_path, 3)
    cluster = formats[0][1]
    formats.clear()
    (tmp_path / "node-2" / "kafka" / "meta.properties").unlink()
    (tmp_path / "node-2" / "kafka").rmdir()
    form(tmp_path, 3)
    assert formats == [(2, cluster, ("--no-initial-controllers",))]


def test_a_start_that_died_between_two_formats_is_finished(
    tmp_path: Path, formats: list[tuple[int, str, tuple[str, ...]]]
) -> None:
    """The nodes that are missing are first voters all the same: as replaced ones they would wait for a majority."""
    broker_node._FAIL_AT["count"] = 1  # type: ignore[attr-defined]  # of the fixture
    with pytest.raises(FixRequest, match="TS1912"):
        form(tmp_path, 3)
    broker_node._FAIL_AT.clear()  # type: ignore[attr-defined]
    form(tmp_path, 3)
    assert [number for number, _, _ in formats] == [1, 2, 3]
    assert len({(cluster, how) for _, cluster, how in formats}) == 1


def test_ports_stay_while_they_are_free(tmp_path: Path) -> None:
    """A port that somebody else has taken is replaced; one of a running node is its own."""
    first = choose_ports(tmp_path, 3, ())
    assert len({port for one in first for port in (one.client, one.controller, one.internal)}) == 9
    write_ports(tmp_path, first)
    assert choose_ports(tmp_path, 3, ()) == first
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first[1].client))
        taken.listen()
        assert choose_ports(tmp_path, 3, (2,)) == first
        moved = choose_ports(tmp_path, 3, ())
        assert moved[1].client != first[1].client
        assert (moved[0], moved[1].internal, moved[2]) == (first[0], first[1].internal, first[2])
    assert json.loads((tmp_path / "ports.json").read_text())[0]["client"] == first[0].client
