"""The first rows of a table, when the page asks for them.

INVARIANT  columns, rows and count are of one state; files after the last shown row are not opened.
"""

from __future__ import annotations

from tablestore_engine.api import Engine
from tablestore_engine.format.row_values import row_dicts
from tablestore_engine.ui.commit_records import Record
from tablestore_engine.ui.compared_rows import COLUMNS_MAX, shown_cells

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
