"""A Python model by incremental_strategy='changed_keys': for which keys its code runs, and what is checked of its rows.

CHANGE     when the code of a Python model runs for affected keys alone
Steps      follow: changes of the inputs → affected keys, none of them, or all rows · the code runs over restricted
           inputs · check: the rows fit the declaration and the table
INVARIANT  rows of a restricted run are put and deleted by key. Where their columns are not those of the table, the code
           runs over all rows: they would replace the table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from dbt.adapters.tablestore.inputs.changed_keys_strategy import CodeInputs, ModelQuery
from dbt.adapters.tablestore.plan.build_plan import diff_columns
from dbt.adapters.tablestore.plan.changed_keys_sql import KeysSelect
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.plan.run_context import PlanContext
from dbt.adapters.tablestore.python_models.keyed_inputs import KeyedInputs, plain_name
from dbt.adapters.tablestore.python_models.model_code import ModelCode
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.node_versions import NodeVersions
from tablestore_engine.api import ColumnInfo, Engine, FixData, FixRequest, RetryError
from tablestore_engine.spi import ReadLog, shown_columns

_OF_STRATEGY = ("affected_limit", "changed_keys")  # what the rows do not depend on
_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})


@dataclass(frozen=True)
class Restriction:
    """`keys`: of the rows that the code gives. `is_idle`: there are none, and the code need not run."""

    keys: KeysSelect
    is_idle: bool


@dataclass(frozen=True)
class KeyedCode:
    """One model of a run."""

    relation: TablestoreRelation
    settings: ModelSettings
    code: ModelCode
    packages: tuple[str, ...]
    inputs: KeyedInputs
    context: PlanContext
    pinned: NodeVersions

    @property
    def node(self) -> str:
        return self.settings.node

    @property
    def engine(self) -> Callable[[], Engine]:
        """The node's look."""
        return self.pinned.looks.engine

    def follow(self, reads: ReadLog) -> Restriction | None:
        """None: the code runs over all rows. `reads` gets the tables of the inputs.

        Raises FixRequest TS1839, TS1870, TS1871, TS1872.
        """
        return self.pinned.retry(self.node, lambda: self._follow(reads))

    def _follow(self, reads: ReadLog) -> Restriction | None:
        name, inputs, affected = self.relation.table_name, self.inputs, self.settings.table.affected
        assert affected is not None  # PythonModels.keyed
        own = self._own()
        if inputs.by:
            self.pinned.query_columns(self.node, inputs.query, reads)
        tables, whole = _tables(reads), ReadLog()
        if inputs.whole:
            self.pinned.query_columns(self.node, inputs.whole_query, whole)
        query = ModelQuery(
            name,
            inputs.query if inputs.by else inputs.whole_query,
            self.context.compiled or "",
            affected,
            self.node,
            self.engine().changed_keys.new_view(),
            code=CodeInputs(
                tuple(map(plain_name, inputs.names)), frozenset(_tables(whole)), self._made_by(tables)
            ),
        )
        is_new = own is None or self.context.full_refresh
        found = self.pinned.inputs.follow(self.node, self.relation, query, tables, is_new=is_new)
        if found.affected is None:
            return None
        is_idle = found.evaluation is None or not found.evaluation.has_effect
        return Restriction(found.affected, is_idle)

    def check(self, rows: str, restriction: Restriction | None) -> bool:
        """Whether the rows of a run may be written; False: the code has to run over all rows.

        Raises FixRequest TS2013, FixData TS2012.
        """
        columns = self.engine().query_columns(f"select * from {rows}")
        self._check_key(columns)
        if restriction is None:
            return True
        own = self._own()
        if own is None:
            raise self._moved()
        stored = tuple((one.name, one.type_text) for one in shown_columns(own.schema))
        if any(diff_columns(tuple((one.name, one.type_text) for one in columns), stored)):
            self.pinned.inputs.compare_all(self.node, "the columns of its rows are not those of its table")
            return False
        strange = self.engine().sql(self.inputs.strange(rows, restriction.keys)).rows
        if strange:
            raise self._strange(strange)
        return True

    def check_plan(self, *, is_upsert: bool) -> None:
        """Rows of some keys do not become the table. Raises RetryError TS2014."""
        found = self.pinned.inputs.followed(self.node)
        if found is not None and found.affected is not None and not is_upsert:
            raise self._moved()

    def _own(self) -> Any:  # noqa: ANN401 - the engine's Table, or None
        existing = self.context.existing
        is_there = existing is not None and existing.is_table
        return self.engine().find_seen_table(self.relation.table_name) if is_there else None

    def _made_by(self, tables: tuple[str, ...]) -> str:
        """The code sees all columns of its inputs, all of its config, and other packages."""
        config = {key: value for key, value in self.code.config.items() if key not in _OF_STRATEGY}
        seen = [(table, self.engine().seen_table(table).schema.fields) for table in tables]
        columns = [
            f"{table}.{one.name} {one.id} {one.type}"
            for table, fields in seen
            for one in sorted(fields, key=lambda one: one.id)
        ]
        versions = [f"{name} {_version(name)}" for name in self.packages]
        return json.dumps(
            [config, columns, versions, list(sys.version_info[:2])], sort_keys=True, default=str
        )

    def _check_key(self, columns: tuple[ColumnInfo, ...]) -> None:
        found = {one.name.lower(): one.type_text for one in columns}
        keys = self.pinned.query_columns(self.node, self.inputs.query)
        for one in (one for one in keys if one.name in self.inputs.key):
            given = found.get(one.name.lower())
            if given != one.type_text and not {given, one.type_text} <= _INTEGERS:
                raise FixRequest(
                    "TS2013",
                    f"Python model {self.relation.table_name}: key column {one.name} is not that of affected_by",
                    why=f"affected_by gives {one.type_text}, the model returns {given or 'no such column'}",
                    fix=f"return {one.name} as {one.type_text}, or cast the expressions in affected_by",
                )

    def _strange(self, rows: Any) -> FixData:  # noqa: ANN401 - rows of SQL
        shown = "; ".join(", ".join(map(str, row)) for row in rows)
        return FixData(
            "TS2012",
            f"Python model {self.relation.table_name} returned rows of keys that it was not run for",
            why=f"{', '.join(self.inputs.key)} of these rows: {shown}. Their inputs were not given to the code",
            fix="return rows of the inputs' keys alone, or correct affected_by: all inputs of a row have its key",
        )

    def _moved(self) -> RetryError:
        return RetryError(
            "TS2014",
            f"Python model {self.relation.table_name} ran for some keys of another table",
            why="the model's table was replaced, dropped or altered while its code ran",
            fix="run the model again",
        )


def _tables(reads: ReadLog) -> tuple[str, ...]:
    return tuple(sorted({one.table for one in reads.reads()}))


def _version(requirement: str) -> str:
    try:
        return metadata.version(requirement)
    except (metadata.PackageNotFoundError, ValueError):
        return ""
