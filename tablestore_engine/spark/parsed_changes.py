"""UPDATE, DELETE and MERGE as Spark's parser reads them, every name resolved by Spark's analyzer.

CHANGE     which column a name in UPDATE, DELETE or MERGE means
Steps      1 Spark's parsed plan of the whole statement  2 target and source are analyzed  3 each expression is analyzed
           over the relations that its place sees (`_SEES`)  4 each assigned name becomes a path in the target
INVARIANT  an expression that needs more than the row (an aggregate, a window, a generator) is refused (TS2121).
INVARIANT  a name is assigned once, and never together with a part of it (TS2120).
WHY        Spark's analyzed UpdateTable and MergeIntoTable have casts that wrap and that swap fields of structs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column, DataFrame, SparkSession

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.spark.spark_internals import Jvm, SparkInner
from tablestore_engine.spark.struct_values import Value
from tablestore_engine.sql.statement import TableName


class Sees(Enum):
    """The relations whose columns an expression may name."""

    TARGET = "target"
    SOURCE = "source"
    BOTH = "both"


@dataclass(frozen=True)
class _When:
    """A kind of WHEN: where its clauses are in the plan, and what its conditions and values see."""

    match: str
    actions: str
    sees: Sees


_WHENS = (
    _When("matched", "matchedActions", Sees.BOTH),
    _When("not_matched", "notMatchedActions", Sees.SOURCE),
    _When("not_matched_by_source", "notMatchedBySourceActions", Sees.TARGET),
)
_ACTIONS = {  # Spark's class → what is done, and whether the columns are all that the target has
    "UpdateAction": ("update", False),
    "UpdateStarAction": ("update", True),
    "DeleteAction": ("delete", False),
    "InsertAction": ("insert", False),
    "InsertStarAction": ("insert", True),
}


@dataclass(frozen=True)
class Assignment:
    """`path`: a column, and the fields inside it if only a part is assigned."""

    path: tuple[str, ...]
    value: Value


@dataclass(frozen=True)
class Clause:
    """What is done with some rows: `match` matched | not_matched | not_matched_by_source; `action` update | delete |
    insert.
    """

    match: str
    action: str
    condition: Column | None
    assignments: tuple[Assignment, ...] = ()


@dataclass(frozen=True)
class ParsedChange:
    """The statement over analyzed frames; UPDATE and DELETE have one clause and no source."""

    target: DataFrame
    columns: Mapping[str, Column]
    clauses: tuple[Clause, ...]
    source: DataFrame | None = None
    on: Column | None = None


def parse_change(session: SparkSession, text: str, name: TableName) -> ParsedChange:
    """REQUIRES one UPDATE, DELETE or MERGE of the table `name`. Raises FixRequest, pyspark's AnalysisException."""
    inner = SparkInner(session)
    plan = inner.parsed(text)
    kind = _class(plan)
    if kind == "MergeIntoTable":
        return _merge(inner, plan, name)
    if kind not in ("UpdateTable", "DeleteFromTable"):
        raise _other_reading(name, kind)
    places = _Places(inner, _target(inner, plan.table(), name))
    if kind == "DeleteFromTable":
        condition = places.values([plan.condition()], Sees.TARGET)[0].column
        clause = Clause("matched", "delete", condition)
    else:
        found = plan.condition()
        conditions = [found.get()] if found.isDefined() else []
        clause = places.clause("matched", "update", conditions, plan.assignments(), Sees.TARGET)
    return ParsedChange(places.frame(Sees.TARGET), places.target_columns(), (clause,))


def _merge(inner: SparkInner, plan: Jvm, name: TableName) -> ParsedChange:
    if bool(plan.withSchemaEvolution()):
        raise _other_reading(name, "WITH SCHEMA EVOLUTION")
    # Spark gives the columns of both sides identities of their own here, if they are of one table
    _target(inner, plan.targetTable(), name)
    joined = inner.analyzed_frame(inner.join(plan.targetTable(), plan.sourceTable(), None))
    both = joined._jdf.queryExecution().analyzed()
    places = _Places(inner, both.left(), both.right(), both)
    on = places.values([plan.mergeCondition()], Sees.BOTH)[0].column
    clauses: list[Clause] = []
    for when in _WHENS:
        actions = getattr(plan, when.actions)()
        clauses += [_when(inner, places, when, actions.apply(at)) for at in range(actions.size())]
    return ParsedChange(
        places.frame(Sees.TARGET), places.target_columns(), tuple(clauses), places.frame(Sees.SOURCE), on
    )


def _when(inner: SparkInner, places: _Places, when: _When, action: Jvm) -> Clause:
    known = _ACTIONS.get(_class(action))
    if known is None:
        raise _other_reading(None, _class(action))
    kind, is_star = known
    conditions = [action.condition().get()] if action.condition().isDefined() else []
    if kind == "delete":
        return Clause(when.match, kind, places.condition(conditions, when.sees))
    if not is_star:
        return places.clause(when.match, kind, conditions, action.assignments(), when.sees)
    names = list(places.target_columns())
    values = places.values([inner.named(name) for name in names], Sees.SOURCE)
    given = tuple(Assignment((name,), value) for name, value in zip(names, values, strict=True))
    return Clause(when.match, kind, places.condition(conditions, when.sees), given)


def _target(inner: SparkInner, written: Jvm, name: TableName) -> Jvm:
    """The analyzed target. Raises FixRequest TS2129 where Spark reads another name than we do."""
    relation = written
    while _class(relation) == "SubqueryAlias":
        relation = relation.child()
    if _class(relation) != "UnresolvedRelation":
        raise _other_reading(name, _class(relation))
    identifier = relation.multipartIdentifier()
    parts = [str(identifier.apply(at)).lower() for at in range(identifier.size())]
    ours = [part.lower() for part in (name.database, name.table) if part]
    if parts[-len(ours) :] != ours or parts[: -len(ours)] not in ([], ["spark_catalog"]):
        raise _other_reading(name, ".".join(parts))
    return inner.analyzed_frame(written)._jdf.queryExecution().analyzed()


class _Places:
    """The relations of one statement, and expressions over them."""

    def __init__(
        self, inner: SparkInner, target: Jvm, source: Jvm | None = None, both: Jvm | None = None
    ) -> None:
        self._inner = inner
        self._plans = {Sees.TARGET: target, Sees.SOURCE: source, Sees.BOTH: both}
        output = target.output()
        attributes = [output.apply(at) for at in range(output.size())]
        self._names = {int(one.exprId().id()): str(one.name()) for one in attributes}
        self._attributes = attributes
        self._arguments: list[Jvm] = []  # of SQL functions, which Spark computes beside the row

    def frame(self, sees: Sees) -> DataFrame:
        """The rows of one relation, and beside those of UPDATE and DELETE the arguments of SQL functions."""
        plan = self._plans[sees]
        is_wider = sees is Sees.TARGET and self._arguments
        return self._inner.frame(
            self._inner.project([*self._attributes, *self._arguments], plan) if is_wider else plan
        )

    def target_columns(self) -> dict[str, Column]:
        """Of the target, by name."""
        return {str(one.name()): self._inner.column(one) for one in self._attributes}

    def condition(self, conditions: Sequence[Jvm], sees: Sees) -> Column | None:
        """Of a clause that may have one."""
        return self.values(conditions, sees)[0].column if conditions else None

    def clause(
        self, match: str, action: str, conditions: Sequence[Jvm], assignments: Jvm, sees: Sees
    ) -> Clause:
        """SET … or INSERT (…) VALUES (…)."""
        pairs = [assignments.apply(at) for at in range(assignments.size())]
        targets = [self._path(one) for one in self._analyzed([pair.key() for pair in pairs], Sees.TARGET)[0]]
        check_paths(targets, action)
        values = self.values([pair.value() for pair in pairs], sees)
        given = tuple(Assignment(path, value) for path, value in zip(targets, values, strict=True))
        return Clause(match, action, self.condition(conditions, sees), given)

    def values(self, expressions: Sequence[Jvm], sees: Sees) -> list[Value]:
        """Each expression, resolved."""
        found, frame = self._analyzed(expressions, sees)
        return [
            Value(self._inner.column(one), field.dataType, frame.sparkSession, self._inner.has_subquery(one))
            for one, field in zip(found, frame.schema.fields, strict=True)
        ]

    def _analyzed(self, expressions: Sequence[Jvm], sees: Sees) -> tuple[list[Jvm], DataFrame]:
        plan = self._plans[sees]
        named = [self._inner.new_alias(one, f"__ts_{at}") for at, one in enumerate(expressions)]
        frame = self._inner.analyzed_frame(self._inner.project(named, plan))
        analyzed = frame._jdf.queryExecution().analyzed()
        if _class(analyzed) != "Project" or not self._is_of_row(analyzed.child(), plan):
            raise FixRequest(
                "TS2121",
                "an expression of the statement needs more than one row",
                why="aggregates, window functions and generators are not allowed in SET, VALUES and conditions, "
                "nor SQL functions in MERGE, nor one inside of another",
                fix="compute the value in a subquery, or in the source of a MERGE",
            )
        items = analyzed.projectList()
        return [items.apply(at).child() for at in range(items.size())], frame

    def _is_of_row(self, below: Jvm, plan: Jvm) -> bool:
        """Whether expressions are over the rows of `plan`, with arguments of SQL functions beside them at most."""
        if bool(below.fastEquals(plan)):
            return True
        is_alone = self._plans[Sees.BOTH] is None  # a MERGE joins its relations itself, without them
        if not is_alone or _class(below) != "Project" or not bool(below.child().fastEquals(plan)):
            return False
        items = below.projectList()
        self._arguments += [items.apply(at) for at in range(len(self._attributes), items.size())]
        return True

    def _path(self, key: Jvm) -> tuple[str, ...]:
        """The column and the fields that an analyzed name means. Raises FixRequest TS2122."""
        fields: list[str] = []
        found = key
        while _class(found) == "GetStructField":
            fields.append(str(found.childSchema().fields()[found.ordinal()].name()))
            found = found.child()
        column = self._names.get(int(found.exprId().id())) if _class(found) == "AttributeReference" else None
        if column is None:
            raise FixRequest(
                "TS2122",
                f"{key.sql()} cannot be assigned",
                why="only columns and fields of structs can; elements of arrays and maps cannot",
                fix="assign the whole column",
            )
        return (column, *reversed(fields))


def check_paths(paths: Iterable[tuple[str, ...]], action: str) -> None:
    """Each is there once, and no part of it besides; INSERT names whole columns. Raises FixRequest TS2120, TS2122."""
    seen: list[tuple[str, ...]] = []
    for path in paths:
        if action == "insert" and len(path) > 1:
            raise FixRequest(
                "TS2122",
                f"{'.'.join(path)} cannot be inserted",
                why="INSERT names whole columns, not fields of structs",
                fix=f"give the whole column {path[0]}, with named_struct",
            )
        for other in seen:
            shorter = min(len(path), len(other))
            if path[:shorter] == other[:shorter]:
                raise repeated(".".join(path), ".".join(other))
        seen.append(path)


def repeated(name: str, other: str) -> FixRequest:
    """A name that is given twice, or with its part."""
    return FixRequest(
        "TS2120",
        f"column {name} is assigned twice",
        why=f"the statement gives a value to {other} and to {name}",
        fix="give each column one value",
    )


def _other_reading(name: TableName | None, found: str) -> Unsupported:
    return Unsupported(
        "TS2129",
        f"the statement on {name} is not understood"
        if name
        else "a clause of the statement is not understood",
        why=f"Spark reads {found} in it",
        fix="write the name of the table as schema.table; the statements are listed in docs/sql.md",
    )


def _class(node: Jvm) -> str:
    return str(node.getClass().getSimpleName())
