"""What the page asks for, and the answer: routes and their parameters, without HTTP.

INVARIANT  an answer is a record of its own: what cannot be read is `trouble` in it, never an exception.
INVARIANT  one answer at a time reads rows, and brokers are asked for one table at a time: many tabs cannot pile up
           work. Brokers that did not answer are not asked again for a while.
INVARIANT  columns, rows and count are of one state; files after the last shown row are not opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tablestore_engine.api import Engine, RetryError, TablestoreError
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.row_values import row_dicts
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.ui.commit_records import Record
from tablestore_engine.ui.compared_rows import COLUMNS_MAX, read_difference, shown_cells
from tablestore_engine.ui.page_section import PagePart, PartTrouble, explain_trouble, read_part
from tablestore_engine.ui.snapshot_pages import read_snapshot_page
from tablestore_engine.ui.table_facts import read_streams, read_summary, read_table, read_topic

ROWS_MAX = 20


def read_first_rows(engine: Engine, name: str) -> Record:
    """At most ROWS_MAX rows of the newest snapshot as text, in no order. Raises NotFound TS1414."""
    table = engine.table(name)
    plan = table.scan(limit=ROWS_MAX).plan_needed()
    names = plan.schema.field_names[:COLUMNS_MAX]
    batches = table.store.read_batches(plan, list(names), limit=ROWS_MAX)
    rows = [row for batch in batches for row in row_dicts(batch)]
    return {
        "columns": list(names),
        "rows": [shown_cells(row, names) for row in rows],
        "total": plan.visible_rows + plan.rows_behind,
        "more_columns": len(plan.schema.field_names) - len(names),
    }


Query = Mapping[str, Sequence[str]]
NAMES_MAX = 40
_AWAY_MS = 30_000


@dataclass
class PageAnswers:
    """Of one engine; `now_ms` is the clock of ages on the page."""

    engine: Engine
    now_ms: Callable[[], int]
    _one_read: OrderedLock = field(
        default_factory=lambda: OrderedLock("rows of the page", Rank.PAGE), repr=False
    )
    _one_topic: OrderedLock = field(
        default_factory=lambda: OrderedLock("topic of the page", Rank.PAGE), repr=False
    )
    _away: tuple[int, PartTrouble] | None = None

    def find(self, route: str) -> Callable[[Query], object] | None:
        """What answers a route; None for an unknown one."""
        return {
            "tables": self._tables,
            "summaries": self._summaries,
            "table": self._table,
            "snapshots": self._snapshots,
            "streams": self._streams,
            "topic": self._topic,
            "difference": self._difference,
            "rows": self._rows,
        }.get(route)

    def _tables(self, _: Query) -> object:
        """Names alone, from listings."""
        found: list[tuple[str, str]] = []
        troubles = []
        for database in self.engine.databases():
            part = read_part(partial(self.engine.relation_names, database))
            if isinstance(part.value, tuple):
                found += [(kind, f"{database}.{name}") for kind, name in part.value]
            else:
                troubles.append({"database": database, **part.as_record()})
        return {
            "warehouse": self.engine.warehouse,
            "now_ms": self.now_ms(),
            "relations": found,
            "troubles": troubles,
        }

    def _summaries(self, query: Query) -> object:
        names = query.get("name", ())[:NAMES_MAX]
        return {name: read_part(partial(read_summary, self.engine, name)).as_record() for name in names}

    def _table(self, query: Query) -> object:
        return read_part(lambda: read_table(self.engine, _name(query), self.now_ms())).as_record()

    def _snapshots(self, query: Query) -> object:
        before = query.get("before", ("",))[0]
        at = int(before) if before.isascii() and before.isdecimal() and len(before) <= 18 else None
        return read_part(lambda: read_snapshot_page(self.engine.table(_name(query)), at)).as_record()

    def _streams(self, query: Query) -> object:
        name = _name(query) if "name" in query else None
        return read_part(lambda: read_streams(self.engine, name, self.now_ms())).as_record()

    def _topic(self, query: Query) -> object:
        with self._one_topic:
            if self._away is not None and self.now_ms() < self._away[0]:
                return PagePart(trouble=self._away[1]).as_record()
            try:
                return PagePart(read_topic(self.engine, _name(query))).as_record()
            except RetryError as error:  # nobody answers: the next table would only wait for it again
                self._away = (self.now_ms() + _AWAY_MS, explain_trouble(error))
                return PagePart(trouble=self._away[1]).as_record()
            except TablestoreError as error:
                return PagePart(trouble=explain_trouble(error)).as_record()

    def _difference(self, query: Query) -> object:
        first, second = (query.get(key, ("",))[0] for key in ("from", "to"))
        with self._one_read:
            return read_part(lambda: read_difference(self.engine, _name(query), first, second)).as_record()

    def _rows(self, query: Query) -> object:
        with self._one_read:
            return read_part(lambda: read_first_rows(self.engine, _name(query))).as_record()


def _name(query: Query) -> str:
    """Raises FixRequest TS1954."""
    found = query.get("name", ())
    if len(found) != 1:
        raise FixRequest(
            "TS1954",
            "the request names no table",
            why=f"its parameter name is there {len(found)} times",
            fix="use the page that tablestore ui serves",
        )
    return found[0]
