"""After a lost claim: which models are built again on what is there now, and tested again, inside the same dbt run.

CHANGE     a dbt run after a lost claim
Steps      lost tables with all that was staged from them, parents first → each is built and staged again →
           each of their tests that has run already runs again → the gate decides anew
WHY        dbt runs each node once; but the model's SQL is compiled and its tests are statements, and both mean
           the same on a new base. The one exception is a table that did not exist when the SQL was compiled
           (is_incremental() was false): that model is not built again here, its test fails and says what to type.
INVARIANT  at most ATTEMPTS_MAX times per table and invocation: a busy table must not keep a run for ever.
INVARIANT  pure.
"""

from __future__ import annotations

from dbt.adapters.tablestore.gate.gate_state import GateState
from tablestore_engine.spi import Staged, order_group

ATTEMPTS_MAX = 3


def pick_again(state: GateState, lost: tuple[Staged, ...]) -> tuple[Staged, ...]:
    """What has to be built again, parents first; () when this invocation cannot, or has tried enough."""
    wanted = {one.key: one for item in lost for one in state.book.with_children(item)}
    known = all(
        item.table in state.rebuilds and state.attempts.get(item.table, 0) < ATTEMPTS_MAX
        for item in wanted.values()
    )
    return order_group(tuple(wanted.values())) if known else ()


def again_line(item: Staged, number: int) -> str:
    """Why a model is built once more in the same run."""
    return (
        f"{item.table}: another writer committed meanwhile; it is planned and tested again on the new rows "
        f"({number} of at most {ATTEMPTS_MAX})"
    )
