"""A query opens only files that can match: the relations of its plan are put on fewer files.

Names      PlanPruner    pruned(): a frame as it was analysed → the same over the files that can hold rows it asks for
           HiddenFiles   what a hidden table reads, and where its links lie
Steps      optimize a copy of the plan → conditions over each relation (plan_conditions) → files that may match
           (store.file_pruning) → the analysed plan again, with other file lists; without the filter of dead rows where
           no file has any
INVARIANT  the analysed plan keeps its columns and their ids; only file lists, and filters that change nothing, differ.
INVARIANT  a relation is pruned by everything that the optimized plan does with its rows: what cannot be traced back to
           one reading of a table (fresh ids) counts for all of its readings.
INVARIANT  conditions must mean the same when the frame runs: the current time is fixed before they are read.
WHY        names stand for views over all files, so any statement is right without this; fewer files only make it fast.
           Where Spark will not optimize the plan, or has other inner classes, the frame stays as it is: running it says
           what is wrong with the query, and test_skipping.py that nothing is pruned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.spark.plan_conditions import (
    Jvm,
    ReadCondition,
    find_hidden,
    instance_of,
    read_conditions,
)
from tablestore_engine.spark.view_sql import FileGroup
from tablestore_engine.store.file_pruning import prune
from tablestore_engine.store.predicate import And, Or
from tablestore_engine.store.stored_file import StoredFile

_FILES_WORTH, _ROWS_WORTH = 8, 100_000  # with less, opening all costs less than optimizing twice
_PATHS_MAX = 200  # each is a call to the JVM; more come as one folder of links


@dataclass(frozen=True)
class HiddenFiles:
    """Files of one hidden table and the folder of their links."""

    group: FileGroup
    folder: Path


@dataclass(frozen=True)
class _Choice:
    """Files of one reading."""

    hidden: HiddenFiles
    files: tuple[StoredFile, ...]

    @property
    def needs_filter(self) -> bool:
        return any(file.deleted for file in self.files)


@dataclass(frozen=True)
class PlanPruner:
    """`tables` are the hidden tables that the session has."""

    session: SparkSession
    tables: Mapping[str, HiddenFiles]

    def pruned(self, frame: DataFrame) -> DataFrame:
        """The same rows from fewer files; the very frame when there is nothing to leave out."""
        try:
            return self._pruned(frame)
        except (PySparkException, Py4JError):
            return frame  # nothing was changed: what is wrong with the query is told when it runs

    def _pruned(self, frame: DataFrame) -> DataFrame:
        analyzed = frame._jdf.queryExecution().analyzed()
        readings = self._readings(analyzed)
        if not any(_is_worth_it(self.tables[name].group) for name, _ in readings):
            return frame
        fixed = self._with_fixed_time(analyzed)
        chosen = self._choose(self._optimized(fixed), readings)
        if not chosen:
            return frame
        rebuilt = self._rebuilt(fixed, chosen)
        rebuilt.setAnalyzed()
        made = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self.session._jsparkSession, rebuilt)
        return DataFrame(made, self.session)

    # ---- what is asked -------------------------------------------------------------------------------------

    @property
    def _jvm(self) -> Jvm:
        return self.session._jvm

    def _readings(self, analyzed: Jvm) -> list[tuple[str, int]]:
        """Hidden table and instance of each relation of ours outside subqueries."""
        leaves = analyzed.collectLeaves()
        found = []
        for at in range(leaves.size()):
            leaf = leaves.apply(at)
            name = find_hidden(leaf)
            if name is not None and name in self.tables:
                found.append((name, instance_of(leaf)))
        return found

    def _with_fixed_time(self, analyzed: Jvm) -> Jvm:
        """now() and its like as literals: a frame that runs later must not look at files chosen for another time."""
        catalyst = self._jvm.org.apache.spark.sql.catalyst
        pattern = getattr(catalyst.trees, "TreePattern$").__getattr__("MODULE$").CURRENT_LIKE()
        if not analyzed.containsPattern(pattern):
            return analyzed
        return getattr(catalyst.optimizer, "ComputeCurrentTime$").__getattr__("MODULE$").apply(analyzed)

    def _optimized(self, analyzed: Jvm) -> Jvm:
        made = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self.session._jsparkSession, analyzed)
        return made.queryExecution().optimizedPlan()

    def _choose(self, optimized: Jvm, readings: Sequence[tuple[str, int]]) -> dict[int, _Choice]:
        """Instance → files, for those that need not read all."""
        schemas = {name: self.tables[name].group.schema for name, _ in readings}
        conditions = list(read_conditions(optimized, schemas))
        chosen = {}
        for name, instance in readings:
            hidden = self.tables[name]
            wanted = _wanted(name, instance, conditions, {known for _, known in readings})
            if wanted is None:
                continue
            files = prune(hidden.group.files, wanted, hidden.group.schema)
            choice = _Choice(hidden, files)
            if len(files) < len(hidden.group.files):
                chosen[instance] = choice
        return chosen

    # ---- the plan again ------------------------------------------------------------------------------------

    def _rebuilt(self, node: Jvm, chosen: Mapping[int, _Choice]) -> Jvm:
        if find_hidden(node) is not None:
            choice = chosen.get(instance_of(node))
            return node if choice is None else self._on_files(node, choice)
        if node.nodeName() == "Filter" and _is_idle(node, chosen):
            return self._rebuilt(node.child(), chosen)
        children = node.children()
        old = [children.apply(at) for at in range(children.size())]
        new = [self._rebuilt(child, chosen) for child in old]
        if all(one is other for one, other in zip(old, new, strict=True)):
            return node
        return node.withNewChildren(self._jvm.PythonUtils.toSeq(new))

    def _on_files(self, node: Jvm, choice: _Choice) -> Jvm:
        """The relation with another list of files."""
        jvm, relation = self._jvm, node.relation()
        paths = [jvm.org.apache.hadoop.fs.Path("file", None, str(path)) for path in _places(choice)]
        datasources = jvm.org.apache.spark.sql.execution.datasources
        index = datasources.InMemoryFileIndex(
            relation.sparkSession(),
            jvm.PythonUtils.toSeq(paths),
            relation.options(),
            jvm.scala.Option.apply(relation.dataSchema()),
            getattr(datasources, "NoopCache$").__getattr__("MODULE$"),
            jvm.scala.Option.apply(relation.location().partitionSpec()),
            jvm.scala.Option.empty(),
        )
        fewer = relation.copy(
            index,
            relation.partitionSchema(),
            relation.dataSchema(),
            relation.bucketSpec(),
            relation.fileFormat(),
            relation.options(),
            relation.sparkSession(),
        )
        return node.copy(fewer, node.output(), node.catalogTable(), node.isStreaming(), node.stream())


def _is_worth_it(group: FileGroup) -> bool:
    files = group.files
    return len(files) >= _FILES_WORTH or (
        len(files) > 1 and sum(f.meta.row_count for f in files) >= _ROWS_WORTH
    )


def _wanted(name: str, instance: int, conditions: Sequence[ReadCondition], known: set[int]) -> Or | None:
    """What the optimized plan asks of this reading; None when it wants all rows, or does not read it at all."""
    found = [
        one.wanted
        for one in conditions
        if one.table == name and (one.instance == instance or one.instance not in known)
    ]
    return Or(tuple(found)) if found and And(()) not in found else None


def _is_idle(node: Jvm, chosen: Mapping[int, _Choice]) -> bool:
    """Whether this is a view's filter of dead rows over files without any."""
    below = node.child()
    while below.nodeName() == "SubqueryAlias":
        below = below.child()
    if find_hidden(below) is None:
        return False
    choice = chosen.get(instance_of(below))
    return choice is not None and not choice.needs_filter


def _places(choice: _Choice) -> list[Path]:
    """Links of the files; of many files one folder that has them all, made once for the same files."""
    names = [file.meta.file_name for file in choice.files]
    if len(names) <= _PATHS_MAX:
        return [choice.hidden.folder / name for name in names]
    digest = hashlib.sha256("\0".join(names).encode()).hexdigest()[:20]
    folder = choice.hidden.folder.parent / f"{choice.hidden.folder.name}_{digest}"
    folder.mkdir(exist_ok=True)
    for file in choice.files:
        link = folder / file.meta.file_name
        if not link.is_symlink():
            link.symlink_to(file.path)
    return [folder]
