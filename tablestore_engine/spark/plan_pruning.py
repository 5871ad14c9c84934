"""A query opens only files that can match: the relations of its plan are put on fewer files.

CHANGE     how files are pruned in a Spark plan
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
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.spark.deletion_bitmap_literal import DeletionBitmapLiteral, fits_literal
from tablestore_engine.spark.jvm_connection import check_connected
from tablestore_engine.spark.linked_files import LinkedFiles
from tablestore_engine.spark.plan_conditions import ReadCondition, read_conditions
from tablestore_engine.spark.plan_outline import Node, Outline, TableReading, read_outline
from tablestore_engine.spark.remote_files import RemoteFiles
from tablestore_engine.spark.remote_relations import Chosen, HiddenFiles, RemoteRelations, StandInReading
from tablestore_engine.spark.spark_internals import Jvm, SparkInner
from tablestore_engine.spark.spark_settings import ReadWay
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.file_pruning import prune
from tablestore_engine.store.read.index_pruning import prune_by_indexes
from tablestore_engine.store.read.predicate import ANYTHING, And, Or, Predicate
from tablestore_engine.store.read.text_condition import PredicateCondition

_FILES_WORTH = 20  # with less, opening all of them (4 ms each) costs less than optimizing twice (80 ms)
_PATHS_MAX = 200  # each is a call to the JVM; more come as one folder of links


class _OtherText(Exception):
    """A node is not the one of its number: the text has line breaks that are not between nodes."""


@dataclass(frozen=True)
class PlanPruner:
    """`tables` are the hidden tables that the session has; `fileio` reads the files behind links."""

    inner: SparkInner
    words: DeletionBitmapLiteral
    tables: Mapping[str, HiddenFiles]
    remote: RemoteRelations
    fileio: FileIO

    def pruned(self, frame: DataFrame) -> DataFrame:
        """The same rows from fewer files; the very frame when nothing is left out. Raises TS1570, TS1572."""
        try:
            return self._pruned(frame)
        except (PySparkException, Py4JError, _OtherText, RecursionError):
            check_connected()
        return self.prepared(frame)  # nothing is left out: what is wrong with the query is told when it runs

    def prepared(self, frame: DataFrame) -> DataFrame:
        """The same rows, stand-ins replaced by all files; the very frame without stand-ins."""
        analyzed = frame._jdf.queryExecution().analyzed()
        nodes = list(self.remote.nodes(self.remote.find(analyzed, self.tables), self.tables, {}))
        return self.inner.frame(self.inner.replaced(analyzed, nodes)) if nodes else frame

    def _pruned(self, frame: DataFrame) -> DataFrame:
        analyzed = frame._jdf.queryExecution().analyzed()
        outline = read_outline(str(analyzed.numberedTreeString()))
        readings = [one for one in outline.readings if one.table in self.tables]
        stand_ins = self.remote.find(analyzed, self.tables)
        whole = list(self._nodes(analyzed, readings, {}))
        made = self.inner.frame(self.inner.replaced(analyzed, whole)) if whole else frame
        if not self._asks(outline, readings, stand_ins):
            return self._with_files(made, analyzed, whole, stand_ins, {})
        fixed = self.inner.with_fixed_time(analyzed)
        asked = made
        if fixed is not None:
            asked = self.inner.frame(self.inner.replaced(fixed, whole))
        occurrences = [(one.table, self._instance(one)) for one in readings if not one.in_subquery]
        occurrences += [(one.name, one.instance) for one in stand_ins if not one.in_subquery]
        chosen = self._choose(asked._jdf.queryExecution().optimizedPlan(), occurrences)
        if not chosen:
            return self._with_files(made, analyzed, whole, stand_ins, {})
        fewer = list(self._nodes(analyzed, readings, chosen))
        basis = analyzed if fixed is None else fixed
        fewer += self._remote_nodes(readings, stand_ins, chosen)
        return self.inner.frame(self.inner.replaced(basis, fewer))

    # ---- what is asked -------------------------------------------------------------------------------------

    def _asks(
        self, outline: Outline, readings: Sequence[TableReading], stand_ins: Sequence[StandInReading]
    ) -> bool:
        """Whether optimizing a plan beforehand is worth it: files may be left out, or columns of an Arrow read."""
        if any(_is_arrow(self.tables[one.name]) and not one.in_subquery for one in stand_ins):
            return True
        return outline.asks and any(self._is_worth_it(one) for one in readings)

    def _is_worth_it(self, reading: TableReading) -> bool:
        return not reading.in_subquery and len(self.tables[reading.table].group.files) >= _FILES_WORTH

    def _choose(self, optimized: Jvm, outside: Sequence[tuple[str, int | None]]) -> dict[int, Chosen]:
        """Instance → what is read, for those readings outside subqueries that need not read all."""
        names = {name: self.tables[name].group.column_names for name, _ in outside}
        conditions = list(read_conditions(optimized, names))
        known = {instance for _, instance in outside}
        chosen = {}
        for name, instance in outside:
            asked = _asked_of(name, instance, conditions, known)
            if asked is None or instance is None:
                continue
            group = self.tables[name].group
            files = group.files if asked.wanted == ANYTHING else self._matching(name, asked.wanted)
            if len(files) < len(group.files) or _is_arrow(self.tables[name]):
                chosen[instance] = replace(asked, files=files)
        return chosen

    def _matching(self, name: str, wanted: Predicate) -> tuple[StoredFile, ...]:
        """Files of a hidden table that may match, by statistics and by file indexes."""
        hidden = self.tables[name]
        schema, fileio = (
            hidden.group.schema,
            self.fileio if isinstance(hidden, LinkedFiles) else hidden.reads.fileio,
        )
        left = prune(hidden.group.files, wanted, schema)
        return prune_by_indexes(fileio, left, PredicateCondition(wanted, schema), schema)

    # ---- the plan again ------------------------------------------------------------------------------------

    def _nodes(
        self, analyzed: Jvm, readings: Sequence[TableReading], chosen: Mapping[int, Chosen]
    ) -> Iterator[tuple[Jvm, Jvm]]:
        """Nodes of the analysed plan with those that take their place; without stand-ins."""
        for reading in readings:
            linked, files = self.tables[reading.table], self._left(reading, chosen)
            owns_words = self._owns_words(reading, chosen)
            if isinstance(linked, LinkedFiles) and len(files) < len(linked.group.files):
                relation = _fetched(analyzed, reading.relation)
                yield relation, self._on(relation, linked, files, own_words=owns_words)
            if reading.alive is None or reading.words is None:
                continue
            if not any(file.deleted for file in files):
                alive = _fetched(analyzed, reading.alive)
                yield alive, alive.child()
                continue
            counted = files if owns_words else linked.group.files
            value = self.words.value_of(reading.table, counted, is_whole=not owns_words)
            if value is not None:
                words = _fetched(analyzed, reading.words)
                yield words, self.inner.one_value(words, value)

    def _owns_words(self, reading: TableReading, chosen: Mapping[int, Chosen]) -> bool:
        """Whether the words of these files alone are few enough for a literal, and those of all files are not."""
        group, files = self.tables[reading.table].group, self._left(reading, chosen)
        is_filtered = reading.words is not None and any(file.deleted for file in files)
        is_part = len(files) < len(group.files)
        return is_part and is_filtered and not fits_literal(group.files) and fits_literal(files)

    def _with_files(
        self,
        made: DataFrame,
        analyzed: Jvm,
        whole: Sequence[tuple[Jvm, Jvm]],
        stand_ins: Sequence[StandInReading],
        chosen: Mapping[int, Chosen],
    ) -> DataFrame:
        """`made`, with files in place of stand-ins where it has any."""
        if not stand_ins:
            return made
        nodes = [*whole, *self._remote_nodes((), stand_ins, chosen)]
        return self.inner.frame(self.inner.replaced(analyzed, nodes))

    def _remote_nodes(
        self,
        readings: Sequence[TableReading],
        stand_ins: Sequence[StandInReading],
        chosen: Mapping[int, Chosen],
    ) -> list[tuple[Jvm, Jvm]]:
        numbered = [(self._instance(one), self._owns_words(one, chosen)) for one in readings]
        owned = frozenset(instance for instance, owns in numbered if owns and instance is not None)
        return list(self.remote.nodes(stand_ins, self.tables, chosen, owned))

    def _on(self, relation: Jvm, linked: LinkedFiles, files: Sequence[StoredFile], *, own_words: bool) -> Jvm:
        """The relation over these files: where they lie, or in a folder of their own."""
        if len(files) <= _PATHS_MAX and not own_words:
            return self.inner.on_files(relation, [linked.path_of(file) for file in files])
        fewer = linked.only(files, own_words=own_words)
        fewer.make()
        return self.inner.on_folder(relation, fewer.folder, len(files))

    def _left(self, reading: TableReading, chosen: Mapping[int, Chosen]) -> tuple[StoredFile, ...]:
        """The files that it reads."""
        group = self.tables[reading.table].group
        instance = None if reading.in_subquery else self._instance(reading)
        found = None if instance is None else chosen.get(instance)
        return group.files if found is None else found.files

    def _instance(self, reading: TableReading) -> int | None:
        """The id of its first column: another one each time the table is read."""
        first_column = self.tables[reading.table].group.column_names[0]
        found = re.match(rf"{re.escape(first_column)}#(\d+)", reading.columns)
        return None if found is None else int(found[1])


def _is_arrow(files: HiddenFiles) -> bool:
    return isinstance(files, RemoteFiles) and files.reads.way is ReadWay.PORTABLE


def _fetched(plan: Jvm, node: Node) -> Jvm:
    found = plan.p(node.number)
    if found is None or not str(found.toString()).startswith(f"{node.text}\n"):
        raise _OtherText
    return found


def _asked_of(
    name: str, instance: int | None, conditions: Sequence[ReadCondition], known: set[int | None]
) -> Chosen | None:
    """What the optimized plan asks of this reading, without its files; None when it does not read it at all."""
    found = [
        one
        for one in conditions
        if one.table == name and (one.instance == instance or one.instance not in known)
    ]
    if not found:
        return None
    wanted = Or(tuple(one.wanted for one in found))
    columns = [one.columns for one in found if one.columns is not None]
    return Chosen(
        (),
        ANYTHING if And(()) in wanted.parts else wanted,
        frozenset().union(*columns) if len(columns) == len(found) else None,
    )
