"""Classes of Spark outside its public API, each looked up once: that is a call to the JVM for every part of a name.

INVARIANT  only what plan_pruning and traced_plan need; integration_tests/spark/test_skipping.py and test_traced_query
           notice when a new Spark has moved it.
WHY        a call costs 0.1 ms or more, and one more when Python lets go of its result: `a.b.c.D.e` are five of them.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from py4j import protocol
from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn

from tablestore_engine.errors import RetryError

Jvm = Any  # an object of the JVM
_BLOCK_BYTES = 128 << 20  # Spark cuts files by its own settings, not by blocks
_NUMBER_BYTES = 8  # of a BIGINT, as Spark estimates a range
_ALL_ROWS = (1 << 31) - 1  # of one batch
_NO_LIMIT, _NO_TIME = (1 << 63) - 1, -1
_BYTES = protocol.SUCCESS + protocol.BYTES_TYPE  # of an answer, which base64 follows


@dataclass(frozen=True)
class KnownFile:
    """`path` as Hadoop has it, `size` in bytes, `listed`: below Spark's folder, with `column=value/` of a constant."""

    path: str
    size: int
    listed: str


def analyzed_sql(session: SparkSession, text: str) -> DataFrame:
    """As SparkSession.sql, which sends a list of arguments to the JVM, even an empty one: four calls."""
    return DataFrame(session._jsparkSession.sql(text), session)


def single(package: Jvm, name: str) -> Jvm:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def _looked_up(path: str) -> cached_property[Jvm]:
    """An attribute of SparkInner: what lies at a path from it, where `Name$` is a Scala object."""

    def look(inner: SparkInner) -> Jvm:
        found: Jvm = inner
        for name in path.split("."):
            found = single(found, name[:-1]) if name.endswith("$") else getattr(found, name)
        return found

    return cached_property(look)


def _next_bytes(iterator: Jvm) -> bytes:
    """The next array of bytes: py4j itself decodes each byte as a number."""
    client, target = iterator._gateway_client, iterator._target_id
    call = f"{protocol.CALL_COMMAND_NAME}{target}\nnext\n{protocol.END_COMMAND_PART}"
    answer = client.send_command(call)
    if answer.startswith(_BYTES):
        return b64decode(answer[len(_BYTES) :])
    return bytes(protocol.get_return_value(answer, client, target, "next"))


class SparkInner:
    """Of one session; `of` gives the one that has looked names up before."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._rules: dict[str, Jvm] = {}

    @classmethod
    def of(cls, session: SparkSession) -> Self:
        """The one of the session, which ends with it. Of two threads at first use each makes one."""
        made: dict[type, Self] = vars(session).setdefault("_tablestore_inner", {})
        if cls not in made or made[cls]._session is not session:
            made[cls] = cls(session)
        return made[cls]

    # ---- frames and plans ----------------------------------------------------------------------------------

    def frame(self, analyzed: Jvm) -> DataFrame:
        """A frame over a plan that needs no more analysis."""
        analyzed.setAnalyzed()
        return DataFrame(self._of_rows(self._session._jsparkSession, analyzed), self._session)

    def replaced(self, plan: Jvm, nodes: Iterable[tuple[Jvm, Jvm]]) -> Jvm:
        """The plan with other nodes in place of some, in its subqueries too. A Scala map is a partial function."""
        all_pairs = list(nodes)
        if len(all_pairs) == 1:
            pairs = self._single_map(*all_pairs[0])
        else:
            pairs = self._hash_map()
            for old, new in all_pairs:
                pairs.put(old, new)
        return plan.transformDownWithSubqueries(self._to_scala_map(pairs))

    def with_fixed_time(self, plan: Jvm) -> Jvm | None:
        """The plan with now() and its like as literals; None when it has none."""
        return self._compute_time(plan) if plan.containsPattern(self._current_like) else None

    def analyzed_frame(self, plan: Jvm) -> DataFrame:
        """A frame over a plan that Spark analyzes first; parts of it may be analyzed already."""
        return DataFrame(self._of_rows(self._session._jsparkSession, plan), self._session)

    def parsed(self, text: str) -> Jvm:
        """The plan that Spark's parser makes of a statement; no name in it means anything yet."""
        return self._session._jsparkSession.sessionState().sqlParser().parsePlan(text)

    def column(self, expression: Jvm) -> Column:
        """An expression as a column of frames."""
        return ClassicColumn(self._to_column(expression))

    def named(self, name: str) -> Jvm:
        """A name of one part, unresolved."""
        return self._catalyst.analysis.UnresolvedAttribute(self._to_seq([name]))

    def has_subquery(self, expression: Jvm) -> bool:
        """Whether a query is inside of it."""
        return bool(self._expressions.SubqueryExpression.hasSubquery(expression))

    def with_rules(self, plan: Jvm, rules: Iterable[str]) -> Jvm:
        """CTEs in place of their references, then the optimizer's rules of these names, once each."""
        plan = self.inlined(plan, is_always=True)
        for rule in rules:
            plan = self.rule(rule).apply(plan)
        return plan

    def inlined(self, plan: Jvm, *, is_always: bool) -> Jvm:
        """CTEs in place of their references; without `is_always` none that gives other rows each time."""
        for more in ((False, False), (False,), ()):
            try:
                return self._optimizer.InlineCTE(is_always, *more).apply(plan)
            except Py4JError as error:
                if not _is_missing_constructor(error):
                    raise
        return plan

    def rule(self, name: str) -> Jvm:
        """A rule of the optimizer."""
        if name not in self._rules:
            self._rules[name] = single(self._optimizer, name)
        return self._rules[name]

    def without_pipes(self, plan: Jvm) -> Jvm:
        """Without the marks of pipe SQL, which Spark removes before its other rules; in subqueries they stay."""
        return self._without_pipes(plan)

    def without_functions(self, plan: Jvm) -> Jvm:
        """The bodies of SQL functions in place of their calls, in subqueries too."""
        return self.rule("EliminateSQLFunctionNode").apply(plan)

    # ---- new nodes -----------------------------------------------------------------------------------------

    def project(self, items: Sequence[Jvm], child: Jvm) -> Jvm:
        """SELECT items."""
        return self._project(self._to_seq(list(items)), child)

    def alias(self, value: Jvm, name: str, identity: Jvm) -> Jvm:
        """`value AS name` with a given ExprId."""
        return self._alias(value, name, identity, self._nil, self._nothing, self._nil)

    def filter(self, condition: Jvm, child: Jvm) -> Jvm:
        """WHERE condition."""
        return self._logical.Filter(condition, child)

    def placeholder(self, output: Jvm) -> Jvm:
        """A leaf with these attributes and no rows."""
        return self.local(output, self._nil)

    def local(self, output: Jvm, data: Jvm) -> Jvm:
        """A leaf with these attributes and rows."""
        return self._local_relation(output, data, False, self._nothing)

    def join(self, left: Jvm, right: Jvm, condition: Jvm | None) -> Jvm:
        """An inner join."""
        return self._logical.Join(left, right, self._inner_join, self._option(condition), self._no_hint)

    def new_alias(self, value: Jvm, name: str) -> Jvm:
        """`value AS name` with an ExprId of its own."""
        return self.alias(value, name, self._new_id())

    # ---- rows ----------------------------------------------------------------------------------------------

    def frame_of_message(self, message: bytes, schema: str) -> DataFrame:
        """The rows of a record batch of Arrow, as its IPC message without a schema; `schema`: of Spark, as JSON."""
        batches = self._to_seq(self._single_list(bytearray(message))).iterator()
        made = self._to_frame(batches, schema, self._session._jsparkSession)
        return DataFrame(made, self._session)

    def known_message(self, frame: DataFrame) -> bytes | None:
        """The rows of a query that optimizing gives, as such a message: no job runs. No bytes: there are no rows.
        None: it has to be run. REQUIRES types whose values do not depend on a time zone. Raises what optimizing raises.
        """
        plan = frame._jdf.queryExecution().optimizedPlan()
        if str(plan.nodeName()) != "LocalRelation":
            return None
        rows = plan.data().iterator()
        try:
            found = self._to_batches(rows, frame._jdf.schema(), _ALL_ROWS, "UTC", False, False, None)
        except Py4JError as error:
            if not _is_missing_constructor(error):
                raise
            return None
        message = _next_bytes(found) if found.hasNext() else b""
        found.hasNext()  # it closes its buffers at the end
        return message

    # ---- parts of plans ------------------------------------------------------------------------------------

    def on_files(self, node: Jvm, paths: Sequence[Path]) -> Jvm:
        """The relation `node` over some of its own files, which lie where they lay. Raises RetryError TS1570."""
        relation = node.relation()
        spec = self._option(relation.location().partitionSpec())
        return self._on(node, paths, self._option(relation.dataSchema()), spec, count=len(paths))

    def on_folder(self, node: Jvm, folder: Path, count: int) -> Jvm:
        """The relation `node` over a folder of `count` files that is laid out as its own: columns in folder names are
        read anew. Raises RetryError TS1570.
        """
        schema = self._option(node.relation().schema())
        return self._on(node, [folder], schema, self._option(None), count=count)

    def _on(self, node: Jvm, paths: Sequence[Path], schema: Jvm, spec: Jvm, *, count: int) -> Jvm:
        relation = node.relation()
        options = relation.options()
        index = self._file_index(
            self._session._jsparkSession,
            self._to_seq([self._path("file", None, str(path)) for path in paths]),
            options,
            schema,
            self._no_cache,
            spec,
            self._option(None),
        )
        self._check_count(index, count, str(paths[0].parent) if paths else "no folder")
        return self._with_index(node, index)

    def _check_count(self, index: Jvm, count: int, folder: str) -> None:
        found = int(index.allFiles().size())  # Spark lists a path that is gone as no files, without an error
        if found != count:
            raise RetryError(
                "TS1570",
                "files that the query reads are no longer in the session's scratch folder",
                why=f"the query was analysed over {count} files in {folder}, {found} of them are there",
                fix="run the statement again; if it fails again, keep cleaners of temporary files out of that folder",
            )

    def _with_index(self, node: Jvm, index: Jvm) -> Jvm:
        relation = node.relation()
        fewer = relation.copy(
            index, relation.partitionSchema(), relation.dataSchema(), relation.bucketSpec(), relation.fileFormat(),
            relation.options(), relation.sparkSession(),
        )  # fmt: skip
        return node.copy(fewer, node.output(), node.catalogTable(), node.isStreaming(), node.stream())

    def on_known_files(self, node: Jvm, folder: str, files: Sequence[KnownFile]) -> Jvm:
        """The relation `node` over files that nothing lists: Spark takes their names, sizes and constants from here.

        The index is made over names below `folder`, as a listing of it would be; then each file gets its real place.
        WHY        Spark finds the files of a partition by their folder, and many of ours share one.
        """
        statuses = self._gateway.new_array(self._file_status, len(files))
        places = []
        for at, file in enumerate(files):
            listed = self._path(f"{folder}/{file.listed}")
            statuses[at] = status = self._file_status(file.size, False, 1, _BLOCK_BYTES, 0, listed)
            places.append((status, self._path(file.path)))
        known, root = self._known_listings(_NO_LIMIT, _NO_TIME).createForNewClient(), self._path(folder)
        known.putLeafFiles(root, statuses)
        relation = node.relation()
        options, schema, nothing = relation.options(), self._option(relation.schema()), self._option(None)
        found = (self._to_seq([root]), options, schema, known, nothing, nothing)
        index = self._file_index(self._session._jsparkSession, *found)
        self._check_count(index, len(files), folder)
        for status, place in places:
            status.setPath(place)
        return self._with_index(node, index)

    def numbers(self, count: int, size_bytes: int) -> DataFrame:
        """The numbers from 0, a partition each, as rows that Spark takes to have `size_bytes` in all."""
        numbers = self._session.range(0, count, 1, count)._jdf.queryExecution().toRdd()
        sized = self._session.range(0, max(1, size_bytes // _NUMBER_BYTES))  # is never run: its size is known
        logical_rdd = single(self._sql.execution, "LogicalRDD")
        try:
            rows = logical_rdd.fromDataset(numbers, sized._jdf, False, False)
        except Py4JError as error:
            if not _is_missing_constructor(error):
                raise
            rows = logical_rdd.fromDataset(numbers, sized._jdf, False)  # of earlier Sparks
        return DataFrame(self._of_rows(self._session._jsparkSession, rows), self._session)

    def renamed(self, plan: Jvm, output: Jvm) -> Jvm:
        """The columns of `plan`, by position, as these attributes."""
        columns = plan.output()
        items = []
        for at in range(output.size()):
            wanted = output.apply(at)
            items.append(self.alias(columns.apply(at), wanted.name(), wanted.exprId()))
        return self.project(items, plan)

    def one_value(self, relation: Jvm, value: Jvm) -> Jvm:
        """In place of a table of one row and one column: its value, known beforehand. Optimizing puts it in place."""
        column = relation.output().head()
        literal = self._literal(value, column.dataType())
        named = self._alias(literal, column.name(), column.exprId(), self._nil, self._nothing, self._nil)
        return self._project(self._to_seq([named]), self._one_row)

    def array_value(self, layout: bytes) -> Jvm:
        """An array of BIGINT from its bytes (deletion_bitmap_literal)."""
        array = self._unsafe_array()
        array.pointTo(bytearray(layout), self._bytes_start, len(layout))
        return array

    # ---- looked up once ------------------------------------------------------------------------------------

    _of_rows = _looked_up("_sql.classic.Dataset.ofRows")
    _sql = _looked_up("_jvm.org.apache.spark.sql")
    _catalyst = _looked_up("_sql.catalyst")
    _single_map = _looked_up("_jvm.java.util.Collections.singletonMap")
    _single_list = _looked_up("_jvm.java.util.Collections.singletonList")
    _to_frame = _looked_up("_jvm.PythonSQLUtils.toDataFrame")
    _to_batches = _looked_up("_sql.execution.arrow.ArrowConverters$.toBatchIterator")
    _hash_map = _looked_up("_jvm.java.util.HashMap")
    _to_scala_map = _looked_up("_jvm.PythonUtils.toScalaMap")
    _to_seq = _looked_up("_jvm.PythonUtils.toSeq")
    _option = _looked_up("_jvm.scala.Option.apply")
    _file_status = _looked_up("_jvm.org.apache.hadoop.fs.FileStatus")
    _known_listings = _looked_up("_sql.execution.datasources.SharedInMemoryCache")
    _path = _looked_up("_jvm.org.apache.hadoop.fs.Path")
    _file_index = _looked_up("_sql.execution.datasources.InMemoryFileIndex")
    _no_cache = _looked_up("_sql.execution.datasources.NoopCache$")
    _compute_time = _looked_up("_catalyst.optimizer.ComputeCurrentTime$.apply")
    _without_pipes = _looked_up("_expressions.EliminatePipeOperators$.apply")
    _new_id = _looked_up("_expressions.NamedExpression$.newExprId")
    _to_column = _looked_up("_sql.classic.ExpressionUtils$.column")
    _optimizer = _looked_up("_catalyst.optimizer")
    _logical = _looked_up("_catalyst.plans.logical")
    _expressions = _looked_up("_catalyst.expressions")
    _local_relation = _looked_up("_logical.LocalRelation")
    _inner_join = _looked_up("_catalyst.plans.Inner$")
    _literal = _looked_up("_catalyst.expressions.Literal")
    _alias = _looked_up("_catalyst.expressions.Alias")
    _project = _looked_up("_catalyst.plans.logical.Project")
    _unsafe_array = _looked_up("_catalyst.expressions.UnsafeArrayData")

    @property
    def _jvm(self) -> Jvm:
        return self._session._jvm

    @cached_property
    def _nil(self) -> Jvm:
        return self._to_seq([])

    @cached_property
    def _nothing(self) -> Jvm:
        return self._option(None)

    @property
    def _gateway(self) -> Jvm:
        return self._session.sparkContext._gateway

    @cached_property
    def _current_like(self) -> Jvm:
        return single(self._catalyst.trees, "TreePattern").CURRENT_LIKE()

    @cached_property
    def _no_hint(self) -> Jvm:
        return single(self._logical, "JoinHint").NONE()

    @cached_property
    def _one_row(self) -> Jvm:
        return self._catalyst.plans.logical.OneRowRelation()

    @cached_property
    def _bytes_start(self) -> int:
        return int(self._jvm.org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET)


def _is_missing_constructor(error: Py4JError) -> bool:
    """Whether another Spark has the constructor: py4j says it in its text alone."""
    return "does not exist" in str(error)
