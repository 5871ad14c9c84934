"""Signed rows of a query, in the driver or in one Spark job: rows of the result, or contributions to its groups.

CHANGE     the Spark job for the deltas of a `changed_keys` run
Rows       `r0`, `r1`, … as the columns of the query, `n`: how often more than before the result has it, never 0
Groups     `g<i>` a value of the group; `n` rows more than before; of column i: `v<i>` the count or sum over added rows
           minus that over removed ones, `m<i>` values of a sum more than before (NULL does not count), `c<i>` values
           that were added or removed, `p<i>`, `q<i>` the extreme of added and of removed values. Of count(DISTINCT)
           `v<i>`, `c<i>`, `m<i>`: values that came, that came or went, and that went
INVARIANT  rows that come with both signs cancel before an extreme is taken of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from tablestore_engine.queryplan.delta_root import (
    COUNT,
    DISTINCT,
    GROUP,
    MAX,
    MIN,
    SUM,
    GroupColumn,
    GroupsRoot,
    find_groups,
)
from tablestore_engine.queryplan.equal_values import is_carried, is_exact, is_float
from tablestore_engine.queryplan.group_state import StateRoot, find_state
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.occurrences import Occurrence, find_occurrences, output_ids
from tablestore_engine.queryplan.plan_nodes import Place
from tablestore_engine.queryplan.signed_parts import SignedPart
from tablestore_engine.queryplan.signed_rows import SignedRows
from tablestore_engine.queryplan.trace_steps import Column, Signed
from tablestore_engine.spark.collected_parts import Collect
from tablestore_engine.spark.local_groups import local_contributions, local_net
from tablestore_engine.spark.local_query import LocalQuery, looked_up
from tablestore_engine.spark.local_steps import LocalInputs
from tablestore_engine.spark.merged_groups import merge_groups
from tablestore_engine.spark.merged_rows import FindRows, MergedRows, merge_rows
from tablestore_engine.spark.net_rows import net_rows
from tablestore_engine.spark.plan_builder import ChangesOf
from tablestore_engine.spark.run_time_plan import Elapsed
from tablestore_engine.spark.traced_plan import TracedPlan

_KEYS = frozenset({
    "byte", "short", "integer", "long", "boolean", "date", "timestamp", "timestamp_ntz", "string", "binary",
})  # fmt: skip
_SUM_TYPE = "decimal(38,{scale})"
_DIGITS_NATIVE = 28  # Spark's sum has ten digits more, so it has room for 10^10 rows
_DIGITS_NEGATED = 34
_LOW = (1 << 32) - 1


@dataclass(frozen=True)
class DeltaQuery:
    """Of one plan and the occurrences that changed. `groups`, `state`: the root groups rows, and a result row follows
    from the stored one, or from the state of its group. Neither: the root is linear.
    """

    plan: TracedPlan
    known: KnownColumns
    signed: SignedRows
    groups: GroupsRoot | None
    state: StateRoot | None
    parts: tuple[SignedPart, ...]
    elapsed: Elapsed | None = None

    @property
    def lacks_count(self) -> bool:
        """Whether nothing of a group says how many rows it has."""
        groups = self.groups
        return (
            groups is not None and not groups.is_total and not any(one.counts_rows for one in groups.columns)
        )

    def found(self, changes: ChangesOf, local: LocalInputs | None, collect: Collect, limit: int) -> pa.Table:
        """At most so many rows. `changes`: plans of the changed rows of a table; `local`: those that the driver has.
        `collect`: runs a frame. Raises NoDelta.
        """
        builder, columns = self.plan.builder(self.known, changes, self.elapsed, collect), self.columns
        steps, names = self._row_steps() if columns is None else self._value_steps(columns)
        known = LocalQuery(builder, self.known, local).rows(steps, [*names, "s"])
        if known is not None:
            made = local_net(known.rows) if columns is None else local_contributions(known.rows, columns)
            if made is not None:
                return made.slice(0, limit)
        frames = [builder.frame(step).toDF(*names, "s") for step in steps]
        rows = reduce(DataFrame.union, frames)
        frame = net_rows(rows) if columns is None else contributions(rows, columns)
        return collect(frame.limit(limit))

    @property
    def columns(self) -> Sequence[GroupColumn] | None:
        """What is added up for each group; None of a linear root."""
        if self.state is not None:
            return self.state.slots
        return None if self.groups is None else self.groups.columns

    def looked_up(self, occurrences: Sequence[Occurrence]) -> frozenset[str] | None:
        """Tables of which few changed rows need rows by key alone; None: some are read whole. `occurrences`: all
        readings of tables.
        """
        steps = [part.step for part in self.parts]
        return looked_up(self.known, occurrences, steps, self.plan.type_of)

    def merged(
        self, found: pa.Table, names: Sequence[str], key: Sequence[str], find_rows: FindRows
    ) -> MergedRows:
        """`found`: the rows of the frame. `names`: of the result's columns, and `key`: some of them, in lower case."""
        if self.groups is None:
            return merge_rows(found, names, key, find_rows)
        columns, is_total = self.groups.columns, self.groups.is_total
        return merge_groups(found, columns, names, key, find_rows, is_total=is_total)

    def _row_steps(self) -> tuple[list[Signed], list[str]]:
        """Rows of the result, and names of their columns before the sign."""
        ids = output_ids(self.plan.root)
        columns = tuple(Column(one, one) for one in ids)
        return self._steps([columns] * len(self.parts)), [f"r{at}" for at in range(len(ids))]

    def _value_steps(self, groups: Sequence[GroupColumn]) -> tuple[list[Signed], list[str]]:
        """What is added up, and names of its columns before the sign."""
        names, places = columns_of(groups)
        columns = [tuple(Column(self.signed.next_identity(), place) for place in places) for _ in self.parts]
        return self._steps(columns), names

    def _steps(self, columns: Sequence[tuple[Column, ...]]) -> list[Signed]:
        return [
            Signed(part.step, wanted, part.signs, self.signed.next_identity())
            for part, wanted in zip(self.parts, columns, strict=True)
        ]


def plan_deltas(
    plan: TracedPlan, known: KnownColumns, key: Sequence[int], elapsed: Elapsed | None = None
) -> DeltaQuery:
    """`key`: ids of the root's columns. `elapsed`: since the last run, if the query uses the time. Raises NoDelta."""
    if not all(isinstance(one, str) and _is_looked_up(one) for one in _types_of(plan, key)):
        raise NoDelta("a key of a type that is not looked up")
    root = find_root(plan, known, key)
    signed = SignedRows(known, find_occurrences(plan.root, plan.tables))
    parts = signed.of(plan.root if root is None else root.below)
    for path, columns in signed.netted.items():
        types = plan.column_types(path)
        for type_ in (types[one] for one in columns):
            if not (is_carried(type_) and (is_exact(type_) or is_float(type_))):
                raise NoDelta(f"a column of type {type_} below an operation that is not linear")
    for type_ in plan.output_types if root is None else ():
        if not (is_exact(type_) or is_float(type_)):
            raise NoDelta(f"a column of type {type_}, whose equal values can differ")
    groups, state = (root, None) if isinstance(root, GroupsRoot) else (None, root)
    return DeltaQuery(plan, known, signed, groups, state, parts, elapsed)


def find_root(plan: TracedPlan, known: KnownColumns, key: Sequence[int]) -> GroupsRoot | StateRoot | None:
    """How rows of groups follow; None: the root is no group by. State only where stored rows do not do. Raises
    NoDelta.
    """
    with suppress(NoDelta):
        groups = find_groups(plan.root, key, plan, known.is_usable)
        if groups is not None:
            return groups
    state = find_state(plan.root, key, plan, known.is_usable)
    for type_ in plan.output_types if state is not None else ():
        if not (isinstance(type_, str) and (_is_looked_up(type_) or is_float(type_))):
            raise NoDelta(f"a column of type {type_} over groups")
    return state


def _types_of(plan: TracedPlan, ids: Sequence[int]) -> list[object]:
    output = output_ids(plan.root)
    return [plan.output_types[output.index(one)] for one in ids]


def _is_looked_up(type_: str) -> bool:
    return type_ in _KEYS or type_.startswith("decimal")


def columns_of(groups: Sequence[GroupColumn]) -> tuple[list[str], list[Place]]:
    """Names of values and conditions, and what they are."""
    names, places = [], list[Place]()
    for at, column in enumerate(groups):
        names += [f"x{at}_{number}" for number in range(len(column.values))]
        places += column.values
        if column.condition is not None:
            names.append(f"f{at}")
            places.append(column.condition)
    return names, places


def contributions(rows: DataFrame, columns: Sequence[GroupColumn]) -> DataFrame:
    """`rows`: values, conditions and signs of rows below the groups."""
    keys = [f"x{at}_0 as g{at}" for at, one in enumerate(columns) if one.how == GROUP]
    extremes = [at for at, one in enumerate(columns) if one.how in (MIN, MAX)]
    distinct = [at for at, one in enumerate(columns) if one.how == DISTINCT]
    first = ["sum(s) as n"]
    for at, one in enumerate(columns):
        first += _added(at, one)
    if not (extremes or distinct):
        return _grouped(rows.selectExpr("*", *keys), _names(keys), first)
    values = [f"{_if(at, columns[at], f'x{at}_0')} as e{at}" for at in extremes]
    values += [f"{_if(at, columns[at], _tuple(at, columns[at]))} as e{at}" for at in distinct]
    net = _grouped(rows.selectExpr("*", *keys, *values), [*_names(keys), *_names(values)], first)
    sums = [f"sum({name}) as {name}" for name in _names(first)]
    for at in extremes:
        function = "max" if columns[at].how == MAX else "min"
        sums += [
            f"{function}(if(n > 0, e{at}, null)) as p{at}",
            f"{function}(if(n < 0, e{at}, null)) as q{at}",
        ]
    for at in distinct:  # rows of one value may differ in other columns
        window = ", ".join([*_names(keys), f"e{at}"])
        net = net.selectExpr("*", f"sum(n) over (partition by {window}) as d{at}")
        sums += [
            f"count(distinct if(d{at} > 0, e{at}, null)) as v{at}",
            f"count_if(e{at} is not null and d{at} <> 0) as c{at}",
            f"count_if(e{at} is not null and d{at} < 0) as m{at}",
        ]
    return _grouped(net, _names(keys), sums)


def _tuple(at: int, column: GroupColumn) -> str:
    """The counted value."""
    return f"struct({', '.join(f'x{at}_{number}' for number in range(len(column.values)))})"


def _added(at: int, column: GroupColumn) -> list[str]:
    """What is added up for a column."""
    if column.how in (GROUP, MIN, MAX, DISTINCT):
        return []
    if column.how == COUNT:
        return [f"sum({_if(at, column, 's', '0')}) as v{at}"]
    value = f"cast(x{at}_0 as {_SUM_TYPE.format(scale=scale_of(column.type))})"
    return [
        f"try_sum({_if(at, column, f'if(s > 0, {value}, {_negated(value, column)})')}) as v{at}",
        f"sum({_if(at, column, 's', '0')}) as m{at}",
        f"sum({_if(at, column, '1', '0')}) as c{at}",
    ]


def _negated(value: str, column: GroupColumn) -> str:
    """Spark's minus rounds a decimal to 34 digits, as Scala does."""
    digits = digits_of(column.type)
    if digits is None or digits <= _DIGITS_NEGATED:
        return f"-{value}"
    text = f"cast({value} as string)"
    shown = f"if({value} < 0, substr({text}, 2), concat('-', {text}))"
    return f"cast({shown} as {_SUM_TYPE.format(scale=scale_of(column.type))})"


def all_contributions(rows: DataFrame, columns: Sequence[GroupColumn]) -> DataFrame:
    """As contributions to nothing, of all rows; an extreme is `v<i>`, and a sum without values 0."""
    keys = [f"x{at}_0 as g{at}" for at, one in enumerate(columns) if one.how == GROUP]
    sums = ["count(1) as n"]
    for at, one in enumerate(columns):
        if one.how == COUNT:
            sums.append(f"count({_if(at, one, '1')}) as v{at}")
        elif one.how in (MIN, MAX):
            sums.append(f"{one.how}({_if(at, one, f'x{at}_0')}) as v{at}")
        elif one.how == SUM:
            counted = f"count({_if(at, one, '1')})"
            none = f"cast(0 as {_SUM_TYPE.format(scale=scale_of(one.type))})"
            sums += [f"if({counted} = 0, {none}, {_sum_of(at, one)}) as v{at}", f"{counted} as m{at}"]
    return _grouped(rows.selectExpr("*", *keys), _names(keys), sums)


def _sum_of(at: int, column: GroupColumn) -> str:
    """A sum in 38 digits, NULL where it has more. Spark adds BIGINT many times as fast as numbers of 38 digits."""
    wide = _SUM_TYPE.format(scale=scale_of(column.type))
    if column.type == "long":
        high, low = (
            f"sum({_if(at, column, one)})" for one in (f"shiftright(x{at}_0, 32)", f"x{at}_0 & {_LOW}L")
        )
        return f"cast({high} as {wide}) * {_LOW + 1}L + {low}"
    digits = digits_of(column.type)
    if digits is None or digits <= _DIGITS_NATIVE:
        return f"cast(sum({_if(at, column, f'x{at}_0')}) as {wide})"
    return f"try_sum({_if(at, column, f'cast(x{at}_0 as {wide})')})"


def scale_of(type_: object) -> int:
    """Digits behind the point of a number."""
    return int(str(type_).rstrip(")").partition(",")[2] or 0) if "decimal" in str(type_) else 0


def digits_of(type_: object) -> int | None:
    """Of a decimal; None of an integer."""
    return int(str(type_)[8:].partition(",")[0]) if "decimal" in str(type_) else None


def _if(at: int, column: GroupColumn, value: str, other: str = "null") -> str:
    """Of the rows that count for a column."""
    terms = [f"x{at}_{number} is not null" for number in range(len(column.values))]
    if column.is_negative:
        terms.append(f"x{at}_0 < 0")
    if column.condition is not None:
        terms.append(f"f{at}")
    return f"if({' and '.join(terms)}, {value}, {other})" if terms else value


def _grouped(rows: DataFrame, keys: Sequence[str], items: Sequence[str]) -> DataFrame:
    return rows.groupBy(*keys).agg(*map(sf.expr, items))


def _names(items: Sequence[str]) -> list[str]:
    return [one.rpartition(" as ")[2] for one in items]
