"""Which merge engine a value of the option `merge-engine` names.

CHANGE     which merge engines there are (option merge-engine)
INVARIANT  its names are those of options.MERGE_ENGINES, which the checks below this layer and the adapter go by
           (tests/house/test_merge_engines.py).
"""

from __future__ import annotations

from collections.abc import Callable

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.aggregation import make_aggregation
from tablestore_engine.lsm.deduplicate import Deduplicate
from tablestore_engine.lsm.first_row import FirstRow
from tablestore_engine.lsm.merge_engine import MergeEngine
from tablestore_engine.lsm.partial_update_options import make_partial_update

ENGINES: dict[str, Callable[[TableSchema], MergeEngine]] = {
    "deduplicate": lambda _schema: Deduplicate(),
    "first-row": lambda _schema: FirstRow(),
    "aggregation": make_aggregation,
    "partial-update": make_partial_update,
}


def get_engine(name: str, schema: TableSchema) -> MergeEngine:
    """The engine of that name, however it is spelt, for the columns of a table. Raises Unsupported TS1655."""
    found, built = ENGINES.get(name.strip().lower()), ", ".join(ENGINES)
    if found is None:
        raise Unsupported(
            "TS1655",
            f"merge engine {name!r} cannot be followed here",
            why=f"rows would be merged wrongly; built: {built}",
            fix="use the table with an engine that knows this merge engine",
        )
    return found(schema)
