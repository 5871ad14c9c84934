"""The inputs on disk: what a step of a history does to them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from integration_tests.soak.query_attack.changes import (
    Alter,
    Compact,
    Later,
    Overwrite,
    Past,
    Put,
    Recreate,
    Redefine,
    Remove,
    Skip,
    Sql,
    Step,
    SwitchView,
)
from integration_tests.soak.query_attack.relation import render
from integration_tests.soak.query_attack.tables import FIRST_MOMENT, Row, TableDef
from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.errors import TablestoreError

SCHEMA = "demo"


class World:
    """Tables of one warehouse. `switch`: gives a view another text."""

    def __init__(
        self,
        engine: Engine,
        tables: tuple[TableDef, ...],
        switch: Callable[[str, str], None],
        redefine: Callable[[int], None],
    ) -> None:
        self.engine, self._switch, self._redefine = engine, switch, redefine
        self.tables = {one.name: one for one in tables}
        self.names = {one.name: f"{SCHEMA}.{one.name}" for one in tables}
        self.skipped: set[str] = set()  # models that are not run in this round
        self.moment = FIRST_MOMENT  # of the next runs
        self.refused: dict[str, str] = {}  # a step → the code that refused it

    def create(self, name: str, rows: tuple[Row, ...]) -> None:
        """The first commit of a table; an empty table has none."""
        table = self.tables[name]
        spec = self._spec(table)
        self.engine.create_table(
            self.names[name],
            table.arrow([]).schema,
            primary_key=spec.primary_key,
            partition_by=spec.partition_by,
            options=spec.options,
        )
        if rows:
            self._write(table, rows)

    def read(self, name: str) -> pa.Table:
        """All rows, without SQL."""
        return self.engine.table(self.names[name]).scan().to_arrow()

    def apply(self, step: Step) -> None:
        """A step that the engine refuses by code did nothing."""
        try:
            self._apply(step)
        except TablestoreError as error:
            self.refused[type(step).__name__] = str(error).splitlines()[0]

    def _apply(self, step: Step) -> None:
        match step:
            case Put():
                self._write(self.tables[step.table], step.rows)
            case Remove():
                self._write(self.tables[step.table], step.rows, delete_when="true")
            case Overwrite():
                self._write(self.tables[step.table], step.rows, mode=WriteMode.OVERWRITE_TABLE)
            case Skip():
                self.skipped = set(step.models)
            case Sql():
                self._sql(step.text)
            case Alter():
                self._alter(step)
            case Past():
                self._go_back(step)
            case Recreate():
                self.engine.drop_table(self.names[step.table])
                self.create(step.table, step.rows)
            case Compact():
                self.engine.table(self.names[step.table]).compact(full=True)
            case Later():
                self.moment += dt.timedelta(days=step.days)
            case Redefine():
                self._redefine(step.number)
            case SwitchView():
                self._switch(step.view, step.text)

    def _spec(self, table: TableDef) -> TableSpec:
        return TableSpec(primary_key=table.key, partition_by=table.partition_by, options=dict(table.options))

    def _write(self, table: TableDef, rows: tuple[Row, ...], **named: Any) -> None:
        spec = WriteSpec(table=self._spec(table), **named)
        self.engine.write(self.names[table.name], self._as_stored(table, rows), spec)

    def _as_stored(self, table: TableDef, rows: tuple[Row, ...]) -> pa.Table:
        """With the columns and types that the table has now; it may have gone back behind an ALTER."""
        stored = self.engine.table(self.names[table.name]).schema.arrow_schema()
        data = [pa.array([row.get(one.name) for row in rows], one.type) for one in stored]
        return pa.Table.from_arrays(data, schema=stored)

    def _sql(self, text: str) -> None:
        self.engine.sql(render(text, self.names, spark=True))

    def _alter(self, step: Alter) -> None:
        for text in step.texts:
            self._sql(text)
        if step.column is not None:
            self._learn(step)

    def _learn(self, step: Alter) -> None:
        table, column = self.tables[step.table], step.column
        assert column is not None
        others = tuple(one for one in table.columns if one.name != column.name)
        self.tables[step.table] = replace(table, columns=(*others, column))

    def _go_back(self, step: Past) -> None:
        table = self.engine.table(self.names.get(step.table, f"{SCHEMA}.{step.table}"))
        ids = table.snapshot_ids()
        if len(ids) <= step.back:
            return
        if step.how == "rollback":
            table.rollback(ids[-1 - step.back])
        else:
            table.restore(snapshot=ids[-1 - step.back])
