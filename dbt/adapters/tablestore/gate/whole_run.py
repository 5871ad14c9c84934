"""publish='all_or_nothing': the nodes of one run that are published together, or none of them.

Steps      the first of them is planned → `bound` names all that the run selects → each is staged, and waits for the
           gate of the run → the last one is built → the outcome of that gate names the staged rows of all of them
WHY        the outcome says what a data test of all these tables would: the engine's rule then publishes them as one
           group, completes it after a kill, and refuses it when readers would see other rows.
INVARIANT  pure. A node that failed or was skipped is not built: the gate stays open, and nothing goes out.
CRASH      gate and outcome lie beside the staged snapshots. `dbt retry` builds what is left under the same gate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from dbt.adapters.tablestore.gate.gate_state import GateState, GateStep, RunGate
from dbt.adapters.tablestore.model_graph import Nodes, nested
from tablestore_engine.api import FixRequest
from tablestore_engine.spi import Outcome, Staged, Verdict

ALL_OR_NOTHING = "all_or_nothing"
_TABLES = frozenset(
    {"tablestore", "incremental", "table", "streaming", "materialized_view", "seed", "snapshot"}
)


def members(nodes: Nodes, selected: Collection[str]) -> frozenset[str]:
    """What the run publishes together: views have no rows that could wait."""
    return frozenset(one for one in selected if one in nodes and _is_member(nodes[one].get("config") or {}))


def _is_member(config: Mapping[str, Any]) -> bool:
    policy = config.get("publish") or nested(config).get("publish")
    return policy == ALL_OR_NOTHING and config.get("materialized") in _TABLES


def bound(state: GateState, nodes: frozenset[str]) -> GateStep:
    """A run that publishes these `nodes` together plans the first of them.

    Once. A retry uses the gate of the run that it continues; one node alone needs none.
    """
    if state.run_gate is not None:
        return GateStep(state)
    gates = {gate for item in state.book.staged if item.key in state.mine for gate in item.gates}
    adopted = sorted(one for one in gates if one.startswith("run.") and one.endswith(ALL_OR_NOTHING))
    name = adopted[-1] if adopted else f"run.{state.branch}.{ALL_OR_NOTHING}" if len(nodes) > 1 else ""
    return GateStep(replace(state, run_gate=RunGate(name, nodes)))


def node_built(state: GateState, node: str) -> GateStep:
    """Its rows are staged or published, or it had nothing to change; kept for the end of the run."""
    return GateStep(replace(state, built=state.built | {node}))


def bound_gates(state: GateState, node: str, *, is_batch: bool, gates: tuple[str, ...]) -> tuple[str, ...]:
    """All that a member waits for. Raises FixRequest TS1819 for batches of which nobody knows the last one."""
    gate = state.run_gate
    if gate is None or not gate.name:
        return gates
    if is_batch and not gates:
        short = node.rsplit(".", maxsplit=1)[-1]
        raise FixRequest(
            "TS1819",
            f"microbatch model {short} has publish='{ALL_OR_NOTHING}', and this run tests it by no data test",
            why="dbt does not say which batch is the last one; its data tests run after all batches",
            fix=f"add a data test to {short}, and use dbt build",
        )
    return (*gates, gate.name)


def run_outcome(state: GateState) -> Outcome | None:
    """What the gate of the run says when all members are built, and something still waits for it."""
    gate = state.run_gate
    if gate is None or not gate.name or missing(state):
        return None
    items = [item for item in state.gated_by(gate.name) if not item.is_out]
    if not any(gate.name in item.missing_gates for item in items):
        return None
    return Outcome(gate.name, Verdict.GREEN, tuple(item.as_read for item in items))


def missing(state: GateState) -> tuple[str, ...]:
    """Members that this run has not built."""
    return tuple(sorted(state.run_gate.nodes - state.built)) if state.run_gate is not None else ()


def with_missing(state: GateState, item: Staged, reason: str) -> str:
    """Why an item waits, with the members that were not built."""
    left = ", ".join(node.split(".", maxsplit=2)[-1] for node in missing(state))
    if not left or state.run_gate is None or state.run_gate.name not in item.gates:
        return reason
    return f"{reason} (not built: {left})"
