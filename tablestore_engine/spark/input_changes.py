"""Where the rows of a traced query come from: changed rows of its tables, and rows with given keys.

CHANGE     how a `changed_keys` run reads the changed rows of an input
INVARIANT  a range is looked up once, not for each reading of the table; its rows are in the driver, if they are few.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tablestore_engine.catalog.resolved_names import Meaning, Overrides, ResolvedTable
from tablestore_engine.queryplan.occurrences import Occurrence
from tablestore_engine.spark.changed_rows_text import ChangedKind, changed_rows_text
from tablestore_engine.spark.local_changes import LocalRows
from tablestore_engine.spark.local_steps import LocalInputs
from tablestore_engine.spark.plan_rows import Values
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.spark_internals import Jvm
from tablestore_engine.sql.scanner import quote_name
from tablestore_engine.sql.table_version import MOMENT, TableVersion, versioned_database

Range = tuple[str, TableVersion]  # schema.table, the changes
_UNGROUPED = frozenset({"MAP", "MULTISET", "VARIANT", "BLOB", "VECTOR", "TIME"})
_FLOATS = frozenset({"FLOAT", "DOUBLE"})


def ranges_of(changes: Mapping[str, TableVersion]) -> dict[str, Range]:
    """By schema.table in lower case."""
    return {table.lower(): (table, version) for table, version in changes.items() if table != MOMENT}


def relation_of(table: str, version: TableVersion) -> str:
    """A range as a name in SQL."""
    database, _, name = table.partition(".")
    return f"{quote_name(versioned_database(database, version))}.{quote_name(name)}"


@dataclass(frozen=True)
class InputChanges:
    """Of one query and the ranges of its tables. `names`: what those in the query mean."""

    resolver: Resolver
    overrides: Overrides
    names: Mapping[tuple[str, str], Meaning | None]
    ranges: Mapping[str, Range]
    _local: dict[Range, LocalRows | None] = field(default_factory=dict)

    def local_inputs(self, occurrences: Sequence[Occurrence]) -> LocalInputs:
        """What the driver has of them. `occurrences`: all readings of tables of the query."""
        return LocalInputs(occurrences, self._changed, self._find, self._has_changes, self._find_listed)

    @property
    def are_few(self) -> bool:
        """Whether all rows that were asked for are values of a plan."""
        return all(one is not None and one.is_few for one in self._local.values())

    def plan(self, table: str, names: Sequence[str], kind: ChangedKind) -> Jvm:
        """The analyzed plan of the changed rows of a table."""
        local = self._rows(table)
        if local is not None and local.is_few:
            return local.frame(self.resolver.session, names, kind)._jdf.queryExecution().analyzed()
        source = relation_of(*self.ranges[table.lower()])
        text = changed_rows_text(source, names, self._groups(table, names), kind)
        frame, _ = self.resolver.whole_query(text, self.overrides)
        return frame._jdf.queryExecution().analyzed()

    def _has_changes(self) -> bool:
        return all(self._rows(one) is not None for one in self.ranges)

    def _changed(self, table: str, names: Sequence[str], kind: ChangedKind) -> pa.Table | None:
        found = self._rows(table) if table.lower() in self.ranges else None
        return None if found is None else found.table(names, kind)

    def _rows(self, table: str) -> LocalRows | None:
        wanted = self.ranges[table.lower()]
        if wanted not in self._local:
            self._local[wanted] = self.resolver.local_changes.find(*wanted, self.overrides.seen)
        return self._local[wanted]

    def _find(self, table: str, keys: Mapping[str, Values], columns: Sequence[str]) -> pa.Table | None:
        found = self._table(table)
        return None if found is None else self.resolver.keys.find(found, keys, columns)

    def _find_listed(
        self, table: str, values: Mapping[str, Values], columns: Sequence[str], rows_max: int
    ) -> pa.Table | None:
        found = self._table(table)
        return None if found is None else self.resolver.keys.find_listed(found, values, columns, rows_max)

    def _table(self, table: str) -> ResolvedTable | None:
        database, _, name = table.lower().partition(".")
        found = self.names.get((database, name))
        return found if isinstance(found, ResolvedTable) else None

    def _groups(self, table: str, names: Collection[str]) -> tuple[str, ...]:
        """Expressions by which equal rows are one group; none: there are types whose equality says too little."""
        found = self._table(table)
        if found is None:
            return ()
        types = {one.name.lower(): one.type for one in found.schema.fields}
        groups: list[str] = []
        for column in names:
            roots = [part.root for part in types[column.lower()].walk()]
            if _UNGROUPED & set(roots) or (len(roots) > 1 and _FLOATS & set(roots)):
                return ()
            groups.append(quote_name(column))
            if _FLOATS & set(roots):  # 0.0 and -0.0 are one group, and two values
                groups.append(f"cast({quote_name(column)} as string)")
        return tuple(groups)
