"""Classes of Spark outside its public API, each looked up once: that is a call to the JVM for every part of a name.

Names      SparkInner   what plans are taken apart and put together with
INVARIANT  only what plan_pruning needs; integration_tests/spark/test_skipping.py notices when a new Spark has moved it.
WHY        a call costs 0.1 ms or more, and one more when Python lets go of its result: `a.b.c.D.e` are five of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

Jvm = Any  # an object of the JVM


class SparkInner:
    """Of one session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    # ---- frames and plans ----------------------------------------------------------------------------------

    def frame(self, analyzed: Jvm) -> DataFrame:
        """A frame over a plan that needs no more analysis."""
        analyzed.setAnalyzed()
        return DataFrame(self._of_rows(self._session._jsparkSession, analyzed), self._session)

    def replaced(self, plan: Jvm, nodes: Iterable[tuple[Jvm, Jvm]]) -> Jvm:
        """The plan with other nodes in place of some, in its subqueries too. A Scala map is a partial function."""
        pairs = self._hash_map()
        for old, new in nodes:
            pairs.put(old, new)
        return plan.transformDownWithSubqueries(self._to_scala_map(pairs))

    def with_fixed_time(self, plan: Jvm) -> Jvm | None:
        """The plan with now() and its like as literals; None when it has none."""
        return self._compute_time(plan) if plan.containsPattern(self._current_like) else None

    # ---- parts of plans ------------------------------------------------------------------------------------

    def on_files(self, node: Jvm, paths: Sequence[Path]) -> Jvm:
        """The relation `node` over some of its own files, which lie where they lay."""
        relation = node.relation()
        spec = self._option(relation.location().partitionSpec())
        return self._on(node, paths, self._option(relation.dataSchema()), spec)

    def on_folder(self, node: Jvm, folder: Path) -> Jvm:
        """The relation `node` over a folder that is laid out as its own: columns in folder names are read anew."""
        return self._on(node, [folder], self._option(node.relation().schema()), self._option(None))

    def _on(self, node: Jvm, paths: Sequence[Path], schema: Jvm, spec: Jvm) -> Jvm:
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
        fewer = relation.copy(
            index, relation.partitionSchema(), relation.dataSchema(), relation.bucketSpec(), relation.fileFormat(),
            options, relation.sparkSession(),
        )  # fmt: skip
        return node.copy(fewer, node.output(), node.catalogTable(), node.isStreaming(), node.stream())

    def one_value(self, relation: Jvm, value: Jvm) -> Jvm:
        """In place of a table of one row and one column: its value, known beforehand. Optimizing puts it in place."""
        column = relation.output().head()
        literal = self._literal(value, column.dataType())
        named = self._alias(literal, column.name(), column.exprId(), self._nil, self._option(None), self._nil)
        return self._project(self._to_seq([named]), self._one_row)

    def array_value(self, layout: bytes) -> Jvm:
        """An array of BIGINT from its bytes (deletion_words)."""
        array = self._unsafe_array()
        array.pointTo(bytearray(layout), self._bytes_start, len(layout))
        return array

    # ---- looked up once ------------------------------------------------------------------------------------

    @property
    def _jvm(self) -> Jvm:
        return self._session._jvm

    @cached_property
    def _of_rows(self) -> Jvm:
        return self._sql.classic.Dataset.ofRows

    @cached_property
    def _sql(self) -> Jvm:
        return self._jvm.org.apache.spark.sql

    @cached_property
    def _catalyst(self) -> Jvm:
        return self._sql.catalyst

    @cached_property
    def _hash_map(self) -> Jvm:
        return self._jvm.java.util.HashMap

    @cached_property
    def _to_scala_map(self) -> Jvm:
        return self._jvm.PythonUtils.toScalaMap

    @cached_property
    def _to_seq(self) -> Jvm:
        return self._jvm.PythonUtils.toSeq

    @cached_property
    def _option(self) -> Jvm:
        return self._jvm.scala.Option.apply

    @cached_property
    def _nil(self) -> Jvm:
        return self._to_seq([])

    @cached_property
    def _path(self) -> Jvm:
        return self._jvm.org.apache.hadoop.fs.Path

    @cached_property
    def _file_index(self) -> Jvm:
        return self._sql.execution.datasources.InMemoryFileIndex

    @cached_property
    def _no_cache(self) -> Jvm:
        return _single(self._sql.execution.datasources, "NoopCache")

    @cached_property
    def _compute_time(self) -> Jvm:
        return _single(self._catalyst.optimizer, "ComputeCurrentTime").apply

    @cached_property
    def _current_like(self) -> Jvm:
        return _single(self._catalyst.trees, "TreePattern").CURRENT_LIKE()

    @cached_property
    def _literal(self) -> Jvm:
        return self._catalyst.expressions.Literal

    @cached_property
    def _alias(self) -> Jvm:
        return self._catalyst.expressions.Alias

    @cached_property
    def _project(self) -> Jvm:
        return self._catalyst.plans.logical.Project

    @cached_property
    def _one_row(self) -> Jvm:
        return self._catalyst.plans.logical.OneRowRelation()

    @cached_property
    def _unsafe_array(self) -> Jvm:
        return self._catalyst.expressions.UnsafeArrayData

    @cached_property
    def _bytes_start(self) -> int:
        return int(self._jvm.org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET)


def _single(package: Jvm, name: str) -> Jvm:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
