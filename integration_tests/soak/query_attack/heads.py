"""SELECT lists over a FROM clause: projections, groups, distinct, windows, the newest row of a key, totals."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from integration_tests.soak.query_attack.expressions import Expr, condition, expression, plain
from integration_tests.soak.query_attack.filters import scalar_column
from integration_tests.soak.query_attack.froms import Scope
from integration_tests.soak.query_attack.relation import Col, From, Ref, Rel, Traits

_SINGLE = re.compile(
    r"from <<(\w+)>> (q\d+)(?! (?:left |right |full |cross |semi |anti )?join\b)(?! ?,)(?! lateral)"
)
_NEW = ("x", "y", "z", "label", "extra", "v2", "k2")


@dataclass(frozen=True)
class Out:
    """One item of a SELECT list."""

    name: str
    expr: Expr

    @property
    def text(self) -> str:
        """`expression as name`."""
        return f"{self.expr.text} as {self.name}"


def _name(rng: random.Random, wished: str | None, taken: Sequence[str]) -> str:
    """A column keeps its name where it can."""
    pool = [wished] if wished and rng.random() < 0.85 else []
    pool += rng.sample(_NEW, len(_NEW))
    free = [one for one in pool if one and one not in taken]
    return free[0] if free else f"c{len(taken) + 1}"


def add_item(rng: random.Random, outs: list[Out], expr: Expr) -> Out:
    """An item more, under a name that is free."""
    wished = expr.ref.sql.partition(".")[2] if expr.ref is not None else None
    out = Out(_name(rng, wished, [one.name for one in outs]), expr)
    outs.append(out)
    return out


def _col(scope: Scope, out: Out) -> Col:
    """Lineage of an item: a plain column stays itself."""
    expr = out.expr
    if expr.ref is not None:
        return replace(expr.ref.col, name=out.name, null=expr.null)
    return Col(out.name, expr.type, expr.null, scope.names.ident(), expr.deps, expr.derived)


def rel_of(
    scope: Scope, outs: Sequence[Out], rest: str, keys: Sequence[frozenset[str]], traits: Traits
) -> Rel:
    """A block of these items."""
    items = ", ".join(one.text for one in outs)
    cols = tuple(_col(scope, one) for one in outs)
    return Rel(f"(select {items} {rest})", cols, tuple(keys), traits, _leads(outs, rest, traits))


def _leads(outs: Sequence[Out], rest: str, traits: Traits) -> tuple[tuple[str, str], ...]:
    """What an `affected_by` of the one input would say."""
    single = _SINGLE.match(rest)
    if single is None or traits.inputs != {single.group(1)}:
        return ()
    alias = f"{single.group(2)}."
    return tuple((one.name, one.expr.text.replace(alias, "")) for one in outs if not one.expr.derived)


def projection(scope: Scope, found: From) -> Rel:
    """The columns of a key, some others, computed ones, at times a scalar subquery."""
    rng, outs = scope.rng, list[Out]()
    wanted = rng.choice(found.keys) if found.keys else frozenset[str]()
    wanted = min(found.keys, key=len) if found.keys and rng.random() < 0.7 else wanted
    names = {one: add_item(rng, outs, plain(found.ref(one))).name for one in sorted(wanted)}
    others = [one for one in found.refs if one.sql not in names]
    for ref in rng.sample(others, min(len(others), rng.randint(1, 5))):
        names[ref.sql] = add_item(rng, outs, plain(ref)).name
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        add_item(rng, outs, expression(rng, found.refs))
    if rng.random() < 0.12 and (made := scalar_column(scope, found)) is not None:
        found, expr = made
        add_item(rng, outs, expr)
    keys = [frozenset(names[one] for one in key) for key in found.keys if key <= set(names)]
    rel = rel_of(scope, outs, found.clause(), keys, found.traits)
    alias = {one.sql.partition(".")[0] for one in found.refs}
    if len(alias) == 1 and rng.random() < 0.15:
        return _all_columns(scope, found, rel)
    return rel


def _all_columns(scope: Scope, found: From, made: Rel) -> Rel:
    """`q1.*`: a column that the input gets is the query's."""
    outs = [Out(one.sql.partition(".")[2], plain(one)) for one in found.refs]
    alias = found.refs[0].sql.partition(".")[0]
    named = tuple(frozenset(one.partition(".")[2] for one in key) for key in found.keys)
    all_of_it = rel_of(scope, outs, found.clause(), named, found.traits.add("select *"))
    return replace(
        all_of_it, item=f"(select {alias}.* {found.clause()})", leads=made.leads and all_of_it.leads
    )


def _aggregate(rng: random.Random, found: From) -> Expr:
    """Exact and in no order."""
    ref = rng.choice(found.refs)
    x, kind = ref.sql, ref.col.type
    deps = ref.col.deps | {ref.col.ident}
    forms = [
        ("count(*)", "bigint", False),
        (f"count({x})", "bigint", False),
        (f"count(distinct {x})", "bigint", False),
    ]
    if kind != "boolean":
        most = ref.col.grouped().type
        forms += [(f"max({x})", most, True), (f"min({x})", most, True)] * 2
    if kind in ("int", "bigint", "decimal"):
        total = "decimal" if kind == "decimal" else "bigint"
        forms += [(f"sum({x})", total, True), (f"sum(distinct {x})", total, True)]
        forms += [(f"sum(case when {condition(rng, found.refs)[0]} then {x} else 0 end)", total, True)]
    if kind == "int":
        forms += [(f"median({x})", "double", True)]
    forms += [(f"count(*) filter (where {condition(rng, found.refs)[0]})", "bigint", False)]
    text, result, null = rng.choice(forms)
    return Expr(text, result, null, deps, True)


def grouping_columns(rng: random.Random, found: From, count: int, *, computed: float = 0.3) -> list[Expr]:
    """What rows are grouped by."""
    refs = [one for one in found.refs if one.col.type != "double"]
    solid = [one for one in refs if not one.col.derived]
    pool = solid if solid and rng.random() < 0.93 else refs
    chosen = rng.sample(pool, min(len(pool), count))
    made = [expression(rng, [one]) if rng.random() < computed else plain(one) for one in chosen]
    made = [plain(ref) if one.type == "double" else one for ref, one in zip(chosen, made, strict=True)]
    return [_grouped_once(one) for one in made]


def _grouped_once(expr: Expr) -> Expr:
    """A group of both zeros shows one of them."""
    if expr.type != "real":
        return expr
    ref = None if expr.ref is None else replace(expr.ref, col=expr.ref.col.grouped())
    return replace(expr, type="real_group", ref=ref)


def grouped(scope: Scope, found: From) -> Rel:
    """GROUP BY columns and expressions, with HAVING at times."""
    rng, outs = scope.rng, list[Out]()
    columns = grouping_columns(rng, found, rng.choice((1, 1, 1, 2)))
    if rng.random() < 0.5:  # no group of NULLs
        found = replace(
            found, where=(*found.where, *(f"{one.text} is not null" for one in columns if one.null))
        )
        columns = [replace(one, null=False) for one in columns]
    groups = [add_item(rng, outs, one) for one in columns]
    traits = found.traits.add("group by")
    if any(one.expr.ref is None for one in groups):
        traits = traits.add("group by expression")
    if any(one.expr.derived for one in groups):
        traits = traits.add(reason="group by a derived column")
    aggregates = [add_item(rng, outs, _aggregate(rng, found)) for _ in range(rng.randint(1, 4))]
    rest = f"{found.clause()} group by {', '.join(one.expr.text for one in groups)}"
    if rng.random() < 0.2:
        traits = traits.add("having")
        counts = [one.expr.text for one in aggregates if one.expr.type == "bigint"] or ["count(*)"]
        rest += f" having {rng.choice(counts)} {rng.choice(('>', '<', '<>'))} {rng.randint(0, 3)}"
    return rel_of(scope, outs, rest, [frozenset(one.name for one in groups)], traits)


def distinct(scope: Scope, found: From) -> Rel:
    """SELECT DISTINCT."""
    rng, outs = scope.rng, list[Out]()
    for one in grouping_columns(rng, found, rng.randint(1, 3)):
        add_item(rng, outs, one)
    traits = found.traits.add("distinct")
    if any(one.expr.derived for one in outs):
        traits = traits.add(reason="distinct over a derived column")
    made = rel_of(scope, outs, found.clause(), [frozenset(one.name for one in outs)], traits)
    return replace(made, item=made.item.replace("(select ", "(select distinct ", 1))


def _order(rng: random.Random, refs: Sequence[Ref], key: frozenset[str]) -> str:
    """A total order: something, then the key."""
    first = rng.choice(refs).sql
    way = rng.choice(("asc nulls first", "desc nulls last"))
    return ", ".join([f"{first} {way}", *(f"{one} asc nulls first" for one in sorted(key))])


def _window(rng: random.Random, found: From, key: frozenset[str], partition: Sequence[Ref]) -> Expr:
    by = f"partition by {', '.join(one.sql for one in partition)} " if partition else ""
    order = _order(rng, found.refs, key)
    ref = rng.choice(found.refs)
    forms = [(f"row_number() over ({by}order by {order})", "bigint"),
             (f"rank() over ({by}order by {ref.sql} desc nulls last)", "bigint"),
             (f"count(*) over ({by.strip()})", "bigint"),
             (f"lag({ref.sql}) over ({by}order by {order})", ref.col.type),
             (f"first_value({ref.sql}) over ({by}order by {order})", ref.col.type)]  # fmt: skip
    if ref.col.type in ("int", "bigint", "decimal"):
        total = "decimal" if ref.col.type == "decimal" else "bigint"
        forms += [
            (f"sum({ref.sql}) over ({by.strip()})", total),
            (f"sum({ref.sql}) over ({by}order by {order})", total),
        ]
    text, kind = rng.choice(forms)
    return Expr(text, kind, True, frozenset(), True)


def _partition(rng: random.Random, found: From, key: frozenset[str]) -> list[Ref]:
    refs = [one for one in found.refs if one.col.type != "double" and not one.col.derived]
    if not refs or rng.random() < 0.08:
        return []
    of_key = [one for one in refs if one.sql in key]
    if of_key and rng.random() < 0.3:
        return of_key[:1] if rng.random() < 0.5 else of_key
    return rng.sample(refs, min(len(refs), rng.choice((1, 1, 2))))


def windowed(scope: Scope, found: From) -> Rel:
    """Windows by one or several partitions, or none; at times grouped by the partition afterwards."""
    rng, outs = scope.rng, list[Out]()
    if not found.keys:
        return grouped(scope, found)
    key, traits = rng.choice(found.keys), found.traits.add("window")
    names = {one: add_item(rng, outs, plain(found.ref(one))).name for one in sorted(key)}
    partition = _partition(rng, found, key)
    for number in range(rng.choice((1, 1, 2))):
        if number and rng.random() < 0.4:
            partition = _partition(rng, found, key)
            traits = traits.add("two partitions")
        add_item(rng, outs, _window(rng, found, key, partition))
        traits = _with_window(traits, partition)
    for ref in partition:
        if ref.sql not in names:
            names[ref.sql] = add_item(rng, outs, plain(ref)).name
    for ref in rng.sample(found.refs, min(2, len(found.refs))):
        if ref.sql not in names:
            names[ref.sql] = add_item(rng, outs, plain(ref)).name
    keys = [frozenset(names[one] for one in each) for each in found.keys if each <= set(names)]
    return rel_of(scope, outs, found.clause(), keys, traits)


def _with_window(traits: Traits, partition: Sequence[Ref]) -> Traits:
    if not partition:
        return traits.add("window without partition", reason="window without partition")
    return replace(traits, windows=(*traits.windows, frozenset(one.col.ident for one in partition)))


def newest(scope: Scope, found: From) -> Rel:
    """The first row of each partition."""
    rng = scope.rng
    if not found.keys:
        return grouped(scope, found)
    key, outs = min(found.keys, key=len), list[Out]()
    partition = _partition(rng, found, frozenset())[:1]
    if not partition:
        return windowed(scope, found)
    by = partition[0]
    name = add_item(rng, outs, plain(by)).name
    for ref in rng.sample(found.refs, min(len(found.refs), 3)):
        if ref is not by:
            add_item(rng, outs, plain(ref))
    rank = f"row_number() over (partition by {by.sql} order by {_order(rng, found.refs, key)})"
    inner = rel_of(scope, outs, found.clause(), [], _with_window(found.traits.add("newest row"), partition))
    item = inner.item.replace(" from ", f", {rank} as rn from ", 1) if " from " not in _items(outs) else None
    if item is None:
        return windowed(scope, found)
    alias = scope.names.alias()
    columns = ", ".join(f"{alias}.{one.name}" for one in outs)
    return replace(
        inner, item=f"(select {columns} from {item} {alias} where {alias}.rn = 1)", keys=(frozenset({name}),)
    )


def _items(outs: Sequence[Out]) -> str:
    return ", ".join(one.text for one in outs)


def rolled_up(scope: Scope, found: From) -> Rel:
    """GROUP BY ROLLUP; `grouping` tells totals from NULLs. Over no rows only DuckDB has a total: HAVING removes it."""
    rng, outs = scope.rng, list[Out]()
    refs = [one for one in found.refs if one.col.type != "double" and not one.col.derived]
    if not refs:
        return grouped(scope, found)
    chosen = [replace(_grouped_once(plain(one)), null=True) for one in rng.sample(refs, min(len(refs), 2))]
    groups = [add_item(rng, outs, one) for one in chosen]
    for one in list(groups):
        outs.append(
            Out(f"all_{one.name}", Expr(f"grouping({one.expr.text})", "int", False, frozenset(), True))
        )
    add_item(rng, outs, _aggregate(rng, found))
    columns = ", ".join(one.expr.text for one in groups)
    key = frozenset([one.name for one in groups] + [f"all_{one.name}" for one in groups])
    traits = found.traits.add("rollup", reason="rollup")
    made = rel_of(
        scope, outs, f"{found.clause()} group by rollup({columns}) having count(*) > 0", [key], traits
    )
    fresh = {one.name: scope.names.ident() for one in groups}
    cols = tuple(
        replace(one, ident=fresh[one.name], null=True) if one.name in fresh else one for one in made.cols
    )
    return replace(made, cols=cols)


def total(scope: Scope, found: From) -> Rel:
    """One row over everything."""
    rng, outs = scope.rng, [Out("one", Expr("1", "int", False, frozenset(), False))]
    for _ in range(rng.randint(1, 3)):
        add_item(rng, outs, _aggregate(rng, found))
    traits = found.traits.add("total", reason="total over all rows")
    return rel_of(scope, outs, found.clause(), [frozenset({"one"})], traits)


HEADS: tuple[tuple[Callable[[Scope, From], Rel], int], ...] = (
    (projection, 40), (grouped, 28), (distinct, 7), (windowed, 8), (newest, 6), (rolled_up, 2), (total, 2),
)  # fmt: skip


def head(scope: Scope, found: From) -> Rel:
    """Any of them."""
    makers, weights = zip(*HEADS, strict=True)
    maker: Callable[[Scope, From], Rel] = scope.rng.choices(makers, weights)[0]
    return maker(scope, found)
