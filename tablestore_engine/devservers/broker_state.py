"""broker.json: which processes the nodes of a development broker are, for the command that stops or repairs it later.

INVARIANT  a process is only signalled when its pid AND its start time are those of the state file.
CRASH      it is written before a node answers, with `ready` false: the next start ends that node and starts again
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tablestore_engine.runtime.server_process import start_time, write_private

_NAME = "broker.json"


@dataclass(frozen=True)
class NodeProcess:
    """As the state file has it; `is_ready`: it has answered, and its users are made."""

    pid: int
    started: str | None
    is_ready: bool = False

    @property
    def is_running(self) -> bool:
        """Whether this very process is there."""
        return self.started is not None and start_time(self.pid) == self.started

    def signal(self, number: int) -> None:
        """To this very process, if it is there."""
        if self.is_running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


@dataclass(frozen=True)
class BrokerState:
    """`url`: one address for each node, in order of number; `nodes`: those that were started, by number."""

    url: str
    secure: bool
    nodes: Mapping[int, NodeProcess]

    def with_node(self, number: int, process: NodeProcess) -> BrokerState:
        return replace(self, nodes={**self.nodes, number: process})


def read_state(folder: Path) -> BrokerState | None:
    """None without one."""
    try:
        state = json.loads((folder / _NAME).read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    kept = state.get("nodes") or {"1": state}  # before there were several: a broker may run since then
    nodes = {
        int(number): NodeProcess(one["pid"], one["started"], one.get("ready", True))
        for number, one in kept.items()
    }
    return BrokerState(state["url"], state.get("secure", False), nodes)


def write_state(folder: Path, state: BrokerState) -> None:
    """Whole or not at all."""
    nodes = {
        str(number): {"pid": one.pid, "started": one.started, "ready": one.is_ready}
        for number, one in state.nodes.items()
    }
    write_private(folder / _NAME, json.dumps({"url": state.url, "secure": state.secure, "nodes": nodes}))


def forget_state(folder: Path) -> None:
    """When none of its nodes runs."""
    (folder / _NAME).unlink(missing_ok=True)
