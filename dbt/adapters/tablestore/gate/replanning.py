"""After a lost claim: build the models again on what is there now, and test them again, inside the same dbt run.

Steps      lost tables with all that was staged from them, parents first → each is built and staged again →
           each of their tests that has run already runs again → the gate decides anew
WHY        dbt runs each node once; but the model's SQL is compiled and its tests are statements, and both mean
           the same on a new base. The one exception is a table that did not exist when the SQL was compiled
           (is_incremental() was false): that model is not built again here, its test fails and says what to type.
INVARIANT  at most ATTEMPTS_MAX times per table and invocation: a busy table must not keep a run for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dbt.adapters.tablestore.messages import TerminalMessages
from tablestore_engine.spi import GateBook, Outcome, Staged, order_group

logger = TerminalMessages("Tablestore")
ATTEMPTS_MAX = 3

Rebuild = Callable[[int], None]  # number of the attempt, from 1
Recheck = Callable[[], Outcome]


@dataclass
class Replanner:
    """Filled while models and tests run; the caller holds the lock."""

    rebuilds: dict[str, Rebuild] = field(default_factory=dict)
    rechecks: dict[str, Recheck] = field(default_factory=dict)
    _attempts: dict[str, int] = field(default_factory=dict)

    def pick(self, book: GateBook, lost: tuple[Staged, ...]) -> tuple[Staged, ...]:
        """What has to be built again, parents first; () when this invocation cannot, or has tried enough."""
        wanted: dict[tuple[str, str], Staged] = {}
        for item in lost:
            wanted |= {one.key: one for one in book.with_children(item)}
        known = all(
            item.table in self.rebuilds and self._attempts.get(item.table, 0) < ATTEMPTS_MAX
            for item in wanted.values()
        )
        return order_group(tuple(wanted.values())) if known else ()

    def rebuild(self, item: Staged) -> None:
        """Stage it once more. Raises what the write raises."""
        number = self._attempts[item.table] = self._attempts.get(item.table, 0) + 1
        logger.info(
            f"{item.table}: somebody else committed meanwhile; it is planned and tested again on the new rows "
            f"({number} of at most {ATTEMPTS_MAX})"
        )
        self.rebuilds[item.table](number)

    def recheck(self, items: Mapping[str, Staged]) -> tuple[Outcome, ...]:
        """Every test of these tables that has run, once more."""
        tests = sorted({gate for item in items.values() for gate in item.gates if gate in self.rechecks})
        return tuple(self.rechecks[test]() for test in tests)
