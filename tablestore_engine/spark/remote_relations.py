"""Relations over data files of object stores, in place of the stand-ins of an analysed plan.

CHANGE     which relation of Spark's plan reads an object store
Steps      the leaves of the plan and of its subqueries that read a stand-in → for each the files, conditions and
           columns that were chosen for it (plan_pruning), else all → a native relation or an Arrow read
INVARIANT  every stand-in is replaced, whatever pruning found: one that is left is an error when the plan runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tablestore_engine.errors import EngineBug
from tablestore_engine.spark.arrow_relation import ArrowRelations
from tablestore_engine.spark.linked_files import LinkedFiles
from tablestore_engine.spark.plan_conditions import HIDDEN_DATABASE
from tablestore_engine.spark.remote_files import RemoteFiles
from tablestore_engine.spark.spark_internals import Jvm, KnownFile, SparkInner
from tablestore_engine.spark.spark_settings import ReadWay
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.predicate import ANYTHING, Predicate

_RELATION = re.compile(rf"Relation (?:\w+\.)?{HIDDEN_DATABASE}\.(\w+)\[[^#]*#(\d+)", re.DOTALL)
HiddenFiles = LinkedFiles | RemoteFiles


@dataclass(frozen=True)
class StandInReading:
    """`node` of the plan reads the hidden table `name`; `instance`: the id of its first column."""

    node: Jvm
    name: str
    instance: int
    in_subquery: bool


@dataclass(frozen=True)
class Chosen:
    """What is read for one reading of a table. `columns` None: all."""

    files: tuple[StoredFile, ...]
    wanted: Predicate = ANYTHING
    columns: frozenset[str] | None = None


class RemoteRelations:
    """Of one session."""

    def __init__(self, session: SparkSession, inner: SparkInner, scratch: Path) -> None:
        self._inner = inner
        self._arrow = ArrowRelations(session, inner, scratch)

    def find(self, plan: Jvm, tables: Mapping[str, HiddenFiles]) -> list[StandInReading]:
        """All of them; none, without a call to the JVM, where no table has stand-ins."""
        if not any(isinstance(one, RemoteFiles) for one in tables.values()):
            return []
        found = list(_stand_ins(plan, tables, in_subquery=False))
        subqueries = plan.subqueriesAll()
        for at in range(subqueries.size()):
            found += _stand_ins(subqueries.apply(at), tables, in_subquery=True)
        return found

    def nodes(
        self,
        stand_ins: Sequence[StandInReading],
        tables: Mapping[str, HiddenFiles],
        chosen: Mapping[int, Chosen],
        own_words: frozenset[int] = frozenset(),
    ) -> Iterator[tuple[Jvm, Jvm]]:
        """Each with the relation that takes its place. `own_words`: instances whose dead rows are numbered anew."""
        # equal nodes are one to Spark's tree: what a subquery reads too is not narrowed
        fixed = {one.instance for one in stand_ins if one.in_subquery}
        for one in stand_ins:
            whole = tables[one.name]
            if not isinstance(whole, RemoteFiles):
                raise EngineBug(
                    "TS1533", f"{one.name} is no stand-in", why="it is read by links", fix="report this"
                )
            wanted = None if one.instance in fixed else chosen.get(one.instance)
            wanted = wanted or Chosen(whole.group.files)
            owns_words = one.instance in own_words and one.instance not in fixed
            fewer = whole.only(wanted.files, own_words=owns_words)
            yield one.node, self._relation(one.node, fewer, wanted)

    def _relation(self, node: Jvm, files: RemoteFiles, chosen: Chosen) -> Jvm:
        if files.reads.way is ReadWay.PORTABLE:
            return self._arrow.on(node, files, chosen.wanted, chosen.columns)
        places = files.reads.places
        if places is None:
            raise EngineBug(
                "TS1533", "no place for Hadoop is known", why="the way is native", fix="report this"
            )
        listed = [
            KnownFile(places.path(file.path), file.meta.file_size, _listed(files, file))
            for file in files.group.files
        ]
        return self._inner.on_known_files(node, f"{places.root.rstrip('/')}/files-of-a-snapshot", listed)


def _stand_ins(
    plan: Jvm, tables: Mapping[str, HiddenFiles], *, in_subquery: bool
) -> Iterator[StandInReading]:
    leaves = plan.collectLeaves()
    for at in range(leaves.size()):
        leaf = leaves.apply(at)
        found = _RELATION.match(str(leaf.simpleString(1)))
        if found is not None and isinstance(tables.get(found[1]), RemoteFiles):
            yield StandInReading(leaf, found[1], int(found[2]), in_subquery)


def _listed(files: RemoteFiles, file: StoredFile) -> str:
    if files.constant_column is None:
        return file.meta.file_name
    return f"{files.constant_column}={files.constants[file.meta.file_name]}/{file.meta.file_name}"
