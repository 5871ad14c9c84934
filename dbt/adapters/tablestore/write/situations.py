"""What is there when a model's run is planned.

INVARIANT  the table is looked up once: columns, keys and options are of one schema.
"""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.tablestore.gate.microbatches import read_batch
from dbt.adapters.tablestore.plan.build_plan import Columns, Situation
from dbt.adapters.tablestore.plan.layout_changes import ModelLayout
from dbt.adapters.tablestore.plan.run_context import PlanContext
from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.api import Engine
from tablestore_engine.spi import shown_columns


def read_situation(
    engine: Engine,
    relation: TablestoreRelation,
    sql: str,
    columns: Columns,
    context: PlanContext,
) -> Situation:
    """`sql`, `columns`: of the model's query."""
    existing = context.existing
    is_there = existing is not None and existing.is_table
    if existing is None and context.batch is not None:  # batches of a table that nobody has seen may wait
        is_there = not context.full_refresh
    seen = engine.find_seen_table(relation.table_name) if is_there else None
    situation = Situation(
        relation.table_name,
        sql,
        columns,
        full_refresh=context.full_refresh,
        batch=read_batch(context.batch, context.event_time),
    )
    if seen is None:
        return situation
    known = seen.schema
    return replace(
        situation,
        table_exists=True,
        table_columns=tuple((c.name, c.type_text) for c in shown_columns(known)),
        table_layout=ModelLayout(known.primary_keys, known.partition_keys, dict(known.options)),
    )
