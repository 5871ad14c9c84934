"""What queries that are answered without Spark have in common: the column of a name, and the rows that are read.

INVARIANT  a name in another letter case than the stored one is Spark's, and so are the rows of a table that merges on
           read or lets rows expire.
"""

from __future__ import annotations

from tablestore_engine.catalog.resolved_names import ResolvedTable
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.read.scan import ScanPlan, is_merged

_EXPIRING = "record-level."  # options by which compaction deletes rows of a certain age


def find_field(schema: TableSchema, name: str) -> DataField | None:
    """The column whose name is written as it is stored."""
    alike = [field for field in schema.fields if field.name.lower() == name.lower()]
    return alike[0] if len(alike) == 1 and alike[0].name == name else None


def find_plan(table: ResolvedTable) -> ScanPlan | None:
    """The rows of a state whose files have them as they are; None: Spark reads them."""
    if is_merged(table.schema) or any(key.startswith(_EXPIRING) for key in table.schema.options):
        return None
    plan = table.load_plan()
    return plan if isinstance(plan, ScanPlan) and not plan.unmerged else None
