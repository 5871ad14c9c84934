"""The write path of Python users: rows of any kind into a table with one commit, then publishing.

Engine.write and Table.write are this function under two names. SQL statements and ingestion, which have rows of their
own, call Warehouse.write_incoming inside Warehouse.running themselves.

INVARIANT  the operation can be stopped by another thread, its Spark jobs carry its tag, and every field of the spec
           takes effect, whichever name it is called by.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.resolved_names import NO_OVERRIDES, Overrides
from tablestore_engine.warehouse.gate.staged_table_swap import StagedTableSwaps
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.incoming import Incoming
from tablestore_engine.warehouse.write.incoming_rows import from_frame, to_incoming
from tablestore_engine.warehouse.write.write_spec import WriteSpec
from tablestore_engine.warehouse.write_report import WriteReport


def write_rows(
    warehouse: Warehouse,
    identifier: Identifier,
    rows: object,
    spec: WriteSpec,
    overrides: Overrides = NO_OVERRIDES,
) -> WriteReport:
    """`rows`: SQL text, a Spark DataFrame, an Arrow table or record batch, a pandas or polars frame.

    `overrides`: states of the tables that SQL text reads. Raises FixRequest TS1023, and what a write raises.
    """
    # a write of Arrow rows may find compactions that are worth a Spark job: where a session runs, they are tagged
    needs_spark = isinstance(rows, str | DataFrame) or warehouse.session.is_started
    seen = overrides.seen
    try:
        with warehouse.running(needs_spark=needs_spark):
            incoming = _to_incoming(warehouse, rows, spec, overrides)
            if spec.beside:
                return replace(
                    StagedTableSwaps(warehouse).write(identifier, incoming, spec), table=identifier
                )
            return replace(warehouse.write_incoming(identifier, incoming, spec, seen=seen), table=identifier)
    finally:
        if seen is not None:
            seen.forget(identifier)


def _to_incoming(warehouse: Warehouse, rows: object, spec: WriteSpec, overrides: Overrides) -> Incoming:
    if isinstance(rows, str):
        frame, _ = warehouse.resolver.pinned_query(rows, overrides)
        return from_frame(frame, spec.delete_when, spec.checks)
    return to_incoming(rows, spec, lambda: warehouse.resolver.session)
