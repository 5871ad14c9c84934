"""A query opens only files that can match: the relations of its plan are put on fewer files.

Steps      the plan's outline (plan_outline): what it reads of us, and whether it asks anything → deletion bitmaps as
           literals (deletion_bitmap_literal) → when it asks: optimize → conditions over each relation (plan_conditions)
           → files that may match (store.read.file_pruning) → the analysed plan with other file lists, and without the
           filter of dead rows where no file has any
INVARIANT  the analysed plan keeps its columns and their ids; only file lists, words, and filters that change nothing
           differ.
INVARIANT  a relation is pruned by everything that the optimized plan does with its rows: what cannot be traced back to
           one reading of a table (fresh ids) counts for all of its readings.
INVARIANT  conditions must mean the same when the frame runs: where files were left out, the current time is a literal.
WHY        names stand for views over all files, so any statement is right without this; fewer files only make it fast.
           Where Spark will not optimize the plan, or has other inner classes, the frame stays as it is: running it says
           what is wrong with the query, and integration_tests/spark/test_skipping.py that nothing is pruned.
           Calls to the JVM are what it costs: one text tells whether there is anything to do, one JSON what is asked,
           one Scala map puts all nodes in place. A frame that nothing is left out of keeps the optimized plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tablestore_engine.spark.deletion_bitmap_literal import DeletionBitmapLiteral, fits_literal
from tablestore_engine.spark.jvm_connection import check_connected
from tablestore_engine.spark.linked_files import LinkedFiles
from tablestore_engine.spark.plan_conditions import ReadCondition, read_conditions
from tablestore_engine.spark.plan_outline import Node, TableReading, read_outline
from tablestore_engine.spark.spark_internals import Jvm, SparkInner
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.file_pruning import prune
from tablestore_engine.store.read.predicate import And, Or

_FILES_WORTH = 20  # with less, opening all of them (4 ms each) costs less than optimizing twice (80 ms)
_PATHS_MAX = 200  # each is a call to the JVM; more come as one folder of links


class _OtherText(Exception):
    """A node is not the one of its number: the text has line breaks that are not between nodes."""


@dataclass(frozen=True)
class PlanPruner:
    """`tables` are the hidden tables that the session has."""

    inner: SparkInner
    words: DeletionBitmapLiteral
    tables: Mapping[str, LinkedFiles]

    def pruned(self, frame: DataFrame) -> DataFrame:
        """The same rows from fewer files; the very frame when nothing is left out. Raises TS1570, TS1572."""
        try:
            return self._pruned(frame)
        except (PySparkException, Py4JError, _OtherText, RecursionError):
            check_connected()
            return frame  # nothing was changed: what is wrong with the query is told when it runs

    def _pruned(self, frame: DataFrame) -> DataFrame:
        analyzed = frame._jdf.queryExecution().analyzed()
        outline = read_outline(str(analyzed.numberedTreeString()))
        readings = [one for one in outline.readings if one.table in self.tables]
        whole = list(self._nodes(analyzed, readings, {}))
        made = self.inner.frame(self.inner.replaced(analyzed, whole)) if whole else frame
        if not outline.asks or not any(self._is_worth_it(one) for one in readings):
            return made
        fixed = self.inner.with_fixed_time(analyzed)
        asked = made
        if fixed is not None:
            asked = self.inner.frame(self.inner.replaced(fixed, whole))
        chosen = self._choose(asked._jdf.queryExecution().optimizedPlan(), readings)
        if not chosen:
            return made
        fewer = self._nodes(analyzed, readings, chosen)
        return self.inner.frame(self.inner.replaced(analyzed if fixed is None else fixed, fewer))

    # ---- what is asked -------------------------------------------------------------------------------------

    def _is_worth_it(self, reading: TableReading) -> bool:
        return not reading.in_subquery and len(self.tables[reading.table].group.files) >= _FILES_WORTH

    def _choose(self, optimized: Jvm, readings: Sequence[TableReading]) -> dict[int, tuple[StoredFile, ...]]:
        """Instance → files, for those readings outside subqueries that need not read all."""
        names = {one.table: self.tables[one.table].group.column_names for one in readings}
        conditions = list(read_conditions(optimized, names))
        outside = [(one, _instance(one, names[one.table][0])) for one in readings if not one.in_subquery]
        known = {instance for _, instance in outside}
        chosen = {}
        for reading, instance in outside:
            wanted = _wanted(reading.table, instance, conditions, known)
            if wanted is None or instance is None:
                continue
            group = self.tables[reading.table].group
            files = prune(group.files, wanted, group.schema)
            if len(files) < len(group.files):
                chosen[instance] = files
        return chosen

    # ---- the plan again ------------------------------------------------------------------------------------

    def _nodes(
        self, analyzed: Jvm, readings: Sequence[TableReading], chosen: Mapping[int, tuple[StoredFile, ...]]
    ) -> Iterator[tuple[Jvm, Jvm]]:
        """Nodes of the analysed plan with those that take their place."""
        for reading in readings:
            linked, files = self.tables[reading.table], self._left(reading, chosen)
            is_filtered = reading.words is not None and any(file.deleted for file in files)
            is_part = len(files) < len(linked.group.files)
            owns_words = (
                is_part and is_filtered and not fits_literal(linked.group.files) and fits_literal(files)
            )
            if is_part:
                relation = _fetched(analyzed, reading.relation)
                yield relation, self._on(relation, linked, files, own_words=owns_words)
            if reading.alive is None or reading.words is None:
                continue
            if not is_filtered:
                alive = _fetched(analyzed, reading.alive)
                yield alive, alive.child()
                continue
            counted = files if owns_words else linked.group.files
            value = self.words.value_of(reading.table, counted, is_whole=not owns_words)
            if value is not None:
                words = _fetched(analyzed, reading.words)
                yield words, self.inner.one_value(words, value)

    def _on(self, relation: Jvm, linked: LinkedFiles, files: Sequence[StoredFile], *, own_words: bool) -> Jvm:
        """The relation over these files: where they lie, or in a folder of their own."""
        if len(files) <= _PATHS_MAX and not own_words:
            return self.inner.on_files(relation, [linked.path_of(file) for file in files])
        fewer = linked.only(files, own_words=own_words)
        fewer.make()
        return self.inner.on_folder(relation, fewer.folder, len(files))

    def _left(
        self, reading: TableReading, chosen: Mapping[int, tuple[StoredFile, ...]]
    ) -> tuple[StoredFile, ...]:
        """The files that it reads."""
        group = self.tables[reading.table].group
        instance = None if reading.in_subquery else _instance(reading, group.column_names[0])
        return group.files if instance is None else chosen.get(instance, group.files)


def _fetched(plan: Jvm, node: Node) -> Jvm:
    found = plan.p(node.number)
    if found is None or not str(found.toString()).startswith(f"{node.text}\n"):
        raise _OtherText
    return found


def _instance(reading: TableReading, first_column: str) -> int | None:
    """The id of its first column: another one each time the table is read."""
    found = re.match(rf"{re.escape(first_column)}#(\d+)", reading.columns)
    return None if found is None else int(found[1])


def _wanted(
    name: str, instance: int | None, conditions: Sequence[ReadCondition], known: set[int | None]
) -> Or | None:
    """What the optimized plan asks of this reading; None when it wants all rows, or does not read it at all."""
    found = [
        one.wanted
        for one in conditions
        if one.table == name and (one.instance == instance or one.instance not in known)
    ]
    return Or(tuple(found)) if found and And(()) not in found else None
