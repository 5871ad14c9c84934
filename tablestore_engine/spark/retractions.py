"""How retractions (-U, -D) of a stream become deletes of a keyed table: a proof over the analyzed plan.

Retractions         what the proof says; `select`: SQL of the deleted keys
prove_retractions   a frame, its key, the streams with their primary keys → Retractions
Rule    1. Every unique_key column is a deterministic expression over columns of the stream occurrence alone.
        2. Every primary key column of the stream is a unique_key column as it is, the same one in each occurrence: so a
           key belongs to one row of the stream, whose changes have one order.
        3. Where only projections, deterministic filters and generators over the stream's own columns stand between the
           stream and the result (*row-local*), the query maps each retraction to the keys that its row was put under:
           the query's own retractions are complete. Else retractions are read from the stream, before joins and
           filters, and their keys are computed by the expressions of rule 1.
WHY     A join or a filter may have another result for the same row in a later run. The -U or -D then produces no row,
        and the row that it takes back would stay.
INVARIANT  the SQL of rule 3 is analyzed again, and its expressions must be the query's (semanticEquals): no reliance on
           how Spark prints an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from tablestore_engine.catalog.resolved_names import Meaning, stored_texts
from tablestore_engine.errors import TablestoreError
from tablestore_engine.spark.moving_times import find_moving_time
from tablestore_engine.spark.plan_expressions import (
    Composer,
    Jvm,
    each,
    expr_id,
    keeps_value,
    used_ids,
)
from tablestore_engine.spark.stream_lineage import Name, StreamOccurrence, trace_streams
from tablestore_engine.sql.scanner import quote_name

Analyze = Callable[[str], tuple[DataFrame, Mapping[Name, Meaning | None]]]
_KIND, _SNAPSHOT = "_row_kind", "_snapshot_id"


@dataclass(frozen=True)
class Retractions:
    """`is_local`: the query's own retractions are complete. `select`: SQL of the keys that the stream's retractions
    delete, with `_snapshot_id`, or None. `clause`: what prevents both; None: nothing.
    """

    is_local: bool
    select: str | None = None
    clause: str | None = None


class _Unproven(Exception):
    def __init__(self, clause: str) -> None:
        super().__init__(clause)
        self.clause = clause


def prove_retractions(
    analyze: Analyze, text: str, key: Sequence[str], streams: Mapping[Name, Sequence[str]]
) -> Retractions:
    """`streams`: (database, name) → primary key of its table. Without a `key` the only question is whether the query
    is row-local. `analyze` gives the frame of a text in which the streams have their names, and what all names mean.
    """
    primary = {(database.lower(), name.lower()): keys for (database, name), keys in streams.items()}
    proof = _RetractionProof(analyze, text, key, primary)
    try:
        return proof.run()
    except _Unproven as unproven:
        return Retractions(is_local=False, clause=unproven.clause)


class _RetractionProof:
    def __init__(
        self, analyze: Analyze, text: str, key: Sequence[str], primary: Mapping[Name, Sequence[str]]
    ) -> None:
        self._analyze, self._key, self._primary = analyze, key, primary
        self._frame, names = analyze(text)
        self._composer = Composer(self._frame.sparkSession)
        plan = self._frame._jdf.queryExecution().analyzed()
        self._is_dated = (
            find_moving_time(self._frame.sparkSession, plan, (text, *stored_texts(names))) is not None
        )
        self._places = {name.lower(): n for n, name in enumerate(self._frame.columns)}

    def run(self) -> Retractions:
        found = trace_streams(self._frame, self._primary)
        for one in found:
            self._check_kinds(one)
        is_local = all(self._is_local(one) for one in found)
        if not self._key:
            return Retractions(is_local)
        for one in found:
            self._check_key(one, is_local=is_local)
        self._check_identity(found)
        if is_local:
            return Retractions(is_local=True)
        return Retractions(is_local=False, select="\nunion\n".join(dict.fromkeys(map(self._select, found))))

    def _item(self, one: StreamOccurrence, name: str) -> Jvm:
        return one.items[self._places[name.lower()]]

    def _check_kinds(self, one: StreamOccurrence) -> None:
        """Kind and order are the stream's own, and no filter depends on the kind."""
        ids = _ids(one)
        for name in (_KIND, _SNAPSHOT):
            item = self._item(one, name)
            if item.nodeName() != "AttributeReference" or ids.get(expr_id(item)) != name:
                raise _Unproven(f"{name} of its result is not that of the stream")
        for condition in one.conditions:
            if any(ids.get(number) == _KIND for number in used_ids(condition)):
                raise _Unproven(f"a filter on {_KIND}")

    def _is_local(self, one: StreamOccurrence) -> bool:
        return one.is_alone and not self._is_dated and all(self._is_own(one, each) for each in one.conditions)

    def _is_own(self, one: StreamOccurrence, expression: Jvm) -> bool:
        """Deterministic, and over values of the stream's row alone."""
        own = {number for number, name in _ids(one).items() if name not in (_KIND, _SNAPSHOT)}
        return used_ids(expression) <= own | one.generated and not self._composer.moves(expression)

    def _check_key(self, one: StreamOccurrence, *, is_local: bool) -> None:
        own = {number for number, name in _ids(one).items() if name not in (_KIND, _SNAPSHOT)}
        allowed = own | one.generated if is_local else own
        for name in self._key:
            item = self._item(one, name)
            is_attribute = item.nodeName() == "AttributeReference"
            if self._composer.moves(item) or (self._is_dated and not is_attribute):
                raise _Unproven(f"{name} of unique_key has a function or subquery whose result may change")
            if not used_ids(item) <= allowed:
                raise _Unproven(
                    f"{name} of unique_key is not computed from columns of {_shown(one.stream)} alone"
                )

    def _check_identity(self, found: Collection[StreamOccurrence]) -> None:
        for stream in sorted({one.stream for one in found}):
            places = [one for one in found if one.stream == stream]
            for column in self._primary[stream]:
                if not any(self._identifies(places, name, column) for name in self._key):
                    raise _Unproven(
                        f"a unique_key ({', '.join(self._key)}) without {column} of the primary key "
                        f"({', '.join(self._primary[stream])}) of {_shown(stream)} as it is"
                    )

    def _identifies(self, places: Collection[StreamOccurrence], name: str, column: str) -> bool:
        for one in places:
            wanted = next(each for each in one.columns if str(each.name()).lower() == column.lower())
            if not keeps_value(self._item(one, name), wanted):
                return False
        return True

    def _select(self, one: StreamOccurrence) -> str:
        """Keys of the occurrence's retractions; the expressions are verified by analyzing them again."""
        items = [self._item(one, name) for name in self._key]
        bare = self._composer.bare(items, one.columns)
        given = ", ".join(
            f"{item.sql()} as {quote_name(name)}" for item, name in zip(bare, self._key, strict=True)
        )
        source = ".".join(map(quote_name, one.stream))
        text = f"select {given}, {_SNAPSHOT} from {source}"
        try:
            plan = self._analyze(text)[0]._jdf.queryExecution().analyzed()
        except TablestoreError:
            raise self._unprintable(one) from None
        again = [
            column.child() if column.nodeName() == "Alias" else column for column in each(plan.projectList())
        ]
        placed = self._composer.placed(again[: len(items)], _columns(plan), one.columns)
        if not all(new.semanticEquals(old) for new, old in zip(placed, items, strict=True)):
            raise self._unprintable(one)
        return f"{text} where {_KIND} in ('-U', '-D')"

    def _unprintable(self, one: StreamOccurrence) -> _Unproven:
        return _Unproven(
            f"a unique_key ({', '.join(self._key)}) whose expressions cannot be evaluated on changes of "
            f"{_shown(one.stream)} alone"
        )


def _ids(one: StreamOccurrence) -> dict[int, str]:
    return {expr_id(column): str(column.name()).lower() for column in one.columns}


def _columns(plan: Jvm) -> list[Jvm]:
    """Attributes of the view that a plain SELECT reads."""
    while plan.nodeName() != "View":
        plan = plan.child()
    return each(plan.output())


def _shown(stream: Name) -> str:
    """`demo.orders` of `demo__changes_start_to_now.orders`."""
    return f"{stream[0].partition('__changes_')[0]}.{stream[1]}"
