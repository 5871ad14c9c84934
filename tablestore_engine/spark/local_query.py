"""Steps of one plan in the driver, or None where Spark has to compute them.

INVARIANT  an error of an expression is none here: Spark computes the step as a plan of its own, and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from polars.exceptions import PolarsError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from tablestore_engine.queryplan.equal_values import is_exact
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.occurrences import Occurrence
from tablestore_engine.queryplan.plan_nodes import Expression, Place
from tablestore_engine.queryplan.trace_steps import Step
from tablestore_engine.spark.changed_rows_text import ChangedKind
from tablestore_engine.spark.collected_parts import NetTable
from tablestore_engine.spark.jvm_connection import check_connected
from tablestore_engine.spark.local_groups import local_net
from tablestore_engine.spark.local_steps import LocalInputs, LocalSteps, NotLocal
from tablestore_engine.spark.plan_builder import PlanBuilder
from tablestore_engine.spark.plan_rows import PlanRows, TypedValues


@dataclass(frozen=True)
class LocalRowsOfSteps:
    """`schema`: of the rows, as Spark has it."""

    rows: pa.Table
    schema: StructType


def looked_up(
    known: KnownColumns,
    occurrences: Sequence[Occurrence],
    steps: Iterable[Step],
    type_of: Callable[[Place], object],
) -> frozenset[str] | None:
    """Tables of which steps over few changed rows read rows by their keys alone; None: Spark has to compute them.

    `occurrences`: all readings of tables. `type_of`: an expression's type, as Catalyst's JSON has it.
    """
    found = set[str]()

    def changed(_: str, names: Sequence[str], kind: ChangedKind) -> pa.Table:
        count = len(names) + (kind is not ChangedKind.BOTH)
        return pa.table([pa.nulls(0)] * count, names=[str(at) for at in range(count)])

    def find(table: str, _: object, columns: Sequence[str]) -> pa.Table:
        found.add(table)
        return pa.table([pa.nulls(0)] * len(columns), names=list(columns))

    def evaluate(_: PlanRows, expressions: Sequence[Expression]) -> list[TypedValues]:
        return [TypedValues(pa.chunked_array([pa.nulls(0)]), type_of(one.place)) for one in expressions]

    local = LocalSteps(known, LocalInputs(occurrences, changed, find), evaluate)
    try:
        for step in steps:
            local.rows(step)
    except NotLocal:
        return None
    return frozenset(found)


@dataclass(frozen=True)
class LocalQuery:
    """`inputs`: None: there are no rows in the driver."""

    builder: PlanBuilder
    known: KnownColumns
    inputs: LocalInputs | None

    def __post_init__(self) -> None:
        self.builder.find_net = self._net

    def rows(self, steps: Sequence[Step], names: Sequence[str] = ()) -> LocalRowsOfSteps | None:
        """Rows of all steps, whose columns have these names, by position; without them c0, c1 …"""
        if self.inputs is None:
            return None
        try:
            found = LocalSteps(self.known, self.inputs, self.builder.values, self.builder.net)
            parts = [found.rows(step) for step in steps]
            types = [[one.type for one in part.columns.values()] for part in parts]
            names = names or [f"c{at}" for at in range(len(types[0]))]
            if any(len(one) != len(names) or one != types[0] for one in types):
                return None
            rows = pa.concat_tables([part.table(names) for part in parts])
            fields = [_field(name, type_) for name, type_ in zip(names, types[0], strict=True)]
            return LocalRowsOfSteps(rows, StructType.fromJson({"type": "struct", "fields": fields}))
        except (NotLocal, pa.ArrowException, PolarsError):
            return None
        except (PySparkException, Py4JError):
            check_connected()
            return None

    def _net(self, step: Step) -> NetTable | None:
        """Signed rows, in which those with both signs cancel."""
        found = self.rows([step])
        if found is None or not all(is_exact(one.dataType.jsonValue()) for one in found.schema.fields):
            return None
        rows = local_net(found.rows)
        return None if rows is None else NetTable(rows, StructType(found.schema.fields[:-1]))


def _field(name: str, type_: object) -> Mapping[str, object]:
    return {"name": name, "type": type_, "nullable": True, "metadata": {}}
