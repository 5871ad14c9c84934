"""The state of the groups of a changed_keys model: read before a run follows changes, and committed with its rows.

CHANGE     when a `changed_keys` model keeps state of its groups
Rule       only where rows do not follow from stored rows: averages, columns computed from aggregates, HAVING
           (tablestore_engine/queryplan/group_state.py), and where the model may follow deltas at all
INVARIANT  rows, positions of inputs and the name of the state are one commit. A state is used only for the query and
           the positions that it was written for; without it all rows are computed, and it is built from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt.adapters.tablestore.inputs.changed_keys_strategy import Evaluation, ModelQuery, no_deltas
from dbt.adapters.tablestore.inputs.position_steps import TIME
from tablestore_engine.spi import (
    GROUPS_MAX,
    NO_STATE,
    STATE_POSITION,
    TABLE_SOURCE,
    PositionStep,
    UnusableState,
    group_state_header,
)

if TYPE_CHECKING:
    from tablestore_engine.api import Engine, Table
    from tablestore_engine.spi import GroupState, QueryState, TracedQuery


@dataclass(frozen=True)
class ReadState:
    """`rows`: the state of all groups; None: there are too many groups, or `lost` says why not."""

    rows: GroupState | None = None
    lost: str = ""


@dataclass(frozen=True)
class GroupStates:
    """Of one model. `query`: None: it needs no state. `known`: positions of its table, as this run sees it. `digest`:
    of its query.
    """

    engine: Engine
    model: str
    query: QueryState | None
    known: Mapping[str, str]
    digest: str

    def read(self) -> ReadState:
        """What the newest commit of the model names."""
        name = self.known.get(STATE_POSITION)
        if self.query is None or name == NO_STATE:
            return ReadState()
        if name is None:
            return ReadState(lost="there is no state of its groups yet")
        try:
            return ReadState(
                self.engine.changed_keys.read_state(self.model, name, self._header(self.query, self.known))
            )
        except UnusableState as unusable:
            return ReadState(lost=f"the state of its groups cannot be used: {unusable.why}")

    def commit(
        self, steps: Mapping[str, PositionStep], evaluation: Evaluation | None, own: Table | None
    ) -> tuple[dict[str, PositionStep], str]:
        """(`steps` with that of the state; a view of all rows of the query, or an empty text).

        `evaluation`: None, or of all rows: all rows are computed, and with them the state. A run that moves nothing
        leaves it as it is.
        """
        name, moved = self.known.get(STATE_POSITION), dict(steps)
        if self.query is None:
            return moved if name is None else {**moved, STATE_POSITION: PositionStep(name, None)}, ""
        if evaluation is None or evaluation.is_whole:
            rows, view = self._build(self.query, own)
            written = NO_STATE if rows is None else self._write(self.query, rows, steps)
            return {**moved, STATE_POSITION: PositionStep(name, written)}, view
        if steps and evaluation.state is not None:
            written = self._write(self.query, evaluation.state, steps)
            return {**moved, STATE_POSITION: PositionStep(name, written)}, ""
        if steps and evaluation.select is not None and name != NO_STATE:
            return {**moved, STATE_POSITION: PositionStep(name, None)}, ""
        return moved, ""

    def _build(self, query: QueryState, own: Table | None) -> tuple[GroupState | None, str]:
        rows = None if own is None else own.facts().rows
        if rows is not None and rows > GROUPS_MAX:
            return None, ""
        return query.read_all(self.engine.changed_keys.new_view())

    def _write(
        self,
        query: QueryState,
        rows: GroupState,
        steps: Mapping[str, PositionStep],
    ) -> str:
        after = {source: step.after for source, step in steps.items()}
        ends = {source: text for source, text in {**self.known, **after}.items() if text is not None}
        return self.engine.changed_keys.write_state(self.model, rows, self._header(query, ends))

    def _header(self, query: QueryState, positions: Mapping[str, str]) -> str:
        inputs = {
            source: text
            for source, text in positions.items()
            if source.startswith(TABLE_SOURCE) or source == TIME
        }
        return group_state_header(query.text, self.digest, inputs)


def plan_states(
    engine: Engine,
    query: ModelQuery,
    traced: TracedQuery,
    own: Table | None,
    known: Mapping[str, str],
    digest: str,
) -> GroupStates:
    """`own`: the model's table as this run sees it, with the positions `known`."""
    found = None if no_deltas(query, own) else traced.state(query.affected.primary_key)
    return GroupStates(engine, query.model, found, known, digest)
