"""One node of the development broker: its folder, its ports, its data, and the start of its process.

CHANGE     one node of the development broker
Folder     server.properties · kafka/ (the data) · broker.log. A broker of one node has them in its data folder, one of
           several in a folder node-1, node-2 … for each; ports.json, cluster.json and the state are of all of them
Format     gives an empty folder its cluster id. Of one node: --standalone. Of several: cluster.json is written first,
           with the cluster id and the first voters; then every node is formatted from it
Replaced   a node whose data is gone is formatted without voters (--no-initial-controllers): it copies the metadata and
           the rows from the others, and takes its place among the voters by itself; a start waits for that
CRASH      between two formats cluster.json is not complete: the next start formats the missing ones as the first voters
           that they are. Only behind the last format a missing one counts as replaced
"""

from __future__ import annotations

import base64
import json
import subprocess
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tablestore_engine.devservers.broker_properties import Ports
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.runtime.server_process import free_port, is_free, write_private

_PORTS = ("client", "controller", "internal")


@dataclass(frozen=True)
class BrokerNode:
    """Number `number`, counted from 1."""

    number: int
    folder: Path

    @property
    def properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        """Its rows and metadata."""
        return self.folder / "kafka"

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"

    @property
    def is_formatted(self) -> bool:
        """Whether its data belongs to a cluster."""
        return (self.data / "meta.properties").exists()


def nodes_of(folder: Path, count: int) -> tuple[BrokerNode, ...]:
    if count == 1:
        return (BrokerNode(1, folder),)
    return tuple(BrokerNode(number, folder / f"node-{number}") for number in range(1, count + 1))


def count_nodes(folder: Path) -> int | None:
    """How many nodes a data folder was made for; None of an empty one."""
    cluster = _read_cluster(folder)
    if cluster is not None:
        return cluster.voters.count(",") + 1
    return 1 if nodes_of(folder, 1)[0].is_formatted else None


def choose_ports(folder: Path, count: int, running: Collection[int]) -> tuple[Ports, ...]:
    """Those of the last start, of a node that does not run while they are free; so clients survive a restart."""
    last = _read_ports(folder)
    kept = [
        {name: port for name, port in one.items() if number in running or is_free(port)}
        for number, one in enumerate(last, start=1)
    ]
    taken = {port for one in kept for port in one.values()}
    return tuple(_fill_ports(one, taken) for one in (*kept, *[{}] * (count - len(kept))))


def _fill_ports(kept: Mapping[str, int], taken: set[int]) -> Ports:
    """Adds the new ones to `taken`: a free port may be found twice before it is used."""
    chosen = dict(kept)
    for name in _PORTS:
        while name not in chosen:
            port = free_port()
            if port not in taken:
                chosen[name] = port
                taken.add(port)
    return Ports(chosen["client"], chosen["controller"], chosen["internal"])


def _read_ports(folder: Path) -> list[dict[str, int]]:
    try:
        found: list[dict[str, int]] = json.loads((folder / "ports.json").read_text("utf-8"))
    except FileNotFoundError:
        return []
    return found


def write_ports(folder: Path, ports: Sequence[Ports]) -> None:
    found = [{name: getattr(one, name) for name in _PORTS} for one in ports]
    write_private(folder / "ports.json", json.dumps(found))


@dataclass(frozen=True)
class _Cluster:
    """`voters`: the controllers that it begins with; `is_complete`: each of them was formatted."""

    cluster_id: str
    voters: str
    is_complete: bool


def format_nodes(
    folder: Path, nodes: Sequence[BrokerNode], ports: Sequence[Ports], java: Sequence[str], runtime: Runtime
) -> None:
    """Give those that have no data their cluster id. Raises FixRequest TS1912."""
    empty = [node for node in nodes if not node.is_formatted]
    if len(nodes) == 1:
        for node in empty:
            _format(java, node, uuid.UUID(runtime.new_uuid()).hex[:22], "--standalone")
        return
    cluster = _read_cluster(folder)
    if cluster is None:
        cluster = _new_cluster(nodes, ports, runtime)
        write_private(folder / "cluster.json", json.dumps(vars(cluster)))
    for node in empty:
        first = ("--initial-controllers", cluster.voters)
        how = ("--no-initial-controllers",) if cluster.is_complete else first
        _format(java, node, cluster.cluster_id, *how)
    if not cluster.is_complete:
        write_private(folder / "cluster.json", json.dumps({**vars(cluster), "is_complete": True}))


def _new_cluster(nodes: Sequence[BrokerNode], ports: Sequence[Ports], runtime: Runtime) -> _Cluster:
    voters = (
        f"{node.number}@127.0.0.1:{one.told.controller}:{_kafka_uuid(runtime)}"
        for node, one in zip(nodes, ports, strict=True)
    )
    return _Cluster(_kafka_uuid(runtime), ",".join(voters), is_complete=False)


def _kafka_uuid(runtime: Runtime) -> str:
    """As Kafka writes one; a leading dash would be taken for an option."""
    text = base64.urlsafe_b64encode(uuid.UUID(runtime.new_uuid()).bytes).decode().rstrip("=")
    return "A" + text[1:] if text.startswith("-") else text


def _read_cluster(folder: Path) -> _Cluster | None:
    try:
        return _Cluster(**json.loads((folder / "cluster.json").read_text("utf-8")))
    except FileNotFoundError:
        return None


def _format(java: Sequence[str], node: BrokerNode, cluster_id: str, *how: str) -> None:
    command = [*java, "kafka.tools.StorageTool", "format", *how, "-t", cluster_id, "-c", str(node.properties)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FixRequest(
            "TS1912",
            f"the data folder of the development broker cannot be formatted: {node.folder}",
            why=(done.stderr or done.stdout).strip()[-400:],
            fix="remove that folder, or name another one",
        )
