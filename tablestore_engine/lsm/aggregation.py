"""Merge engine aggregation: each column of a key is the aggregate of its versions' values.

CHANGE     the merge engine aggregation (option aggregation.remove-record-on-delete)
Steps      keys with several versions → of each column the values in merge order → one value (AggregateFunction)
PAIMON     a lone version is its row, unaggregated. With remove-record-on-delete -D starts its key again: with the
           values that it carries, into which later versions are aggregated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.aggregate_function import AggregateFunction, no_retraction
from tablestore_engine.lsm.aggregate_picks import First, Last
from tablestore_engine.lsm.aggregate_registry import make_function
from tablestore_engine.lsm.combined_rows import combined, groups_of, without_earlier
from tablestore_engine.lsm.key_order import Index
from tablestore_engine.lsm.key_versions import Versions
from tablestore_engine.lsm.merge_engine import Merged
from tablestore_engine.lsm.merge_ties import tied_rows
from tablestore_engine.lsm.option_errors import not_exact
from tablestore_engine.lsm.version_groups import VersionGroups
from tablestore_engine.options import FieldOptions, OptionSet

DEFAULT = "last_non_null_value"


@dataclass(frozen=True)
class Aggregation:
    """`functions`: of every column outside the key; `ignoring`: columns that retractions leave alone."""

    functions: Mapping[str, AggregateFunction]
    ignoring: frozenset[str] = frozenset()
    removes_on_delete: bool = False
    newest_wins: bool = False
    keeps_stored: bool = False
    takes_retractions: bool = True
    combines: bool = True

    @property
    def merges_lone(self) -> bool:
        """Whether a function may change a value that is alone."""
        return any(function.changes_lone for function in self.functions.values())

    def merge(self, versions: Versions) -> Merged:
        """The newest version of each key with the aggregates of all. Raises FixData TS1659, TS1660, TS1663, TS1664."""
        assert versions.rows is not None
        groups, removed = groups_of(versions), None
        if self.removes_on_delete:
            groups, removed = without_earlier(groups, versions)
        made = {
            name: self._aggregated(name, function, versions.rows.column(name), groups)
            for name, function in self.functions.items()
        }
        return combined(versions, made, removed)

    def find_ties(self, versions: Versions) -> Index:
        """Keys whose row would be another one if rows that nothing orders came the other way round."""
        names = [name for name, function in self.functions.items() if function.is_ordered]
        return tied_rows(self, versions, names)

    def _aggregated(
        self, name: str, function: AggregateFunction, values: pa.ChunkedArray, groups: VersionGroups
    ) -> pa.ChunkedArray:
        if groups.retracts.any():
            if name in self.ignoring:
                groups = groups.only(~groups.retracts)
            elif not function.retracts:
                raise no_retraction(name)
        return function.aggregate(values, groups)


def make_aggregation(schema: TableSchema) -> Aggregation:
    """The engine of a table. Raises Unsupported TS1661, TS1667; FixRequest TS1662, TS1665, TS1672."""
    options, fields = OptionSet(schema.options), FieldOptions(schema.options)
    sequence, keys = (
        options.columns("sequence.field"),
        {*schema.primary_keys, *schema.partition_keys},
    )
    functions = {
        field.name: Last(skips_null=False)
        if field.name in sequence
        else make_function(fields.function(field.name) or DEFAULT, field, fields)
        for field in schema.fields
        if field.name not in keys or field.name in sequence
    }
    removes = options.boolean("aggregation.remove-record-on-delete")
    first = [name for name, function in functions.items() if isinstance(function, First)]
    if removes and first:
        raise not_exact(
            f"the first value of column {first[0]} with removed rows",
            why="what is first after aggregation.remove-record-on-delete depends on compactions in Paimon",
            fix="use another aggregate function, or leave aggregation.remove-record-on-delete out",
        )
    return Aggregation(
        functions,
        frozenset(name for name in functions if fields.ignores_retract(name) and name not in sequence),
        removes,
    )
