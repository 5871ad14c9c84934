"""What stands in FROM: one input, chains of joins, stars, self joins, two roles of one table, VALUES, explode."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from integration_tests.soak.query_attack.expressions import Expr, condition
from integration_tests.soak.query_attack.joins import (
    KINDS,
    Names,
    comparable,
    cross,
    join,
    pick_pairs,
    start,
)
from integration_tests.soak.query_attack.relation import Col, From, Ref, Rel, Traits

Source = Callable[[], Rel]


@dataclass(frozen=True)
class Scope:
    """`source`: a random relation, at times a whole query; `bases`: inputs, views and models by name."""

    names: Names
    source: Source
    bases: tuple[Rel, ...]

    @property
    def rng(self) -> random.Random:
        """Of the whole query."""
        return self.names.rng

    def base(self) -> Rel:
        """A random one, as an occurrence of its own."""
        return self.names.fresh(self.rng.choice(self.bases))


def single(scope: Scope) -> From:
    """One item."""
    return start(scope.names, scope.source())


def chain(scope: Scope) -> From:
    """One to three joins of any kind."""
    found = single(scope)
    for _ in range(scope.rng.choice((1, 1, 1, 2, 2, 3))):
        found = _joined(scope, found, scope.source(), scope.rng.choice(KINDS))
    return found


def _joined(scope: Scope, left: From, rel: Rel, kind: str) -> From:
    pairs = pick_pairs(scope.rng, left, rel)
    if pairs:
        return join(scope.names, left, rel, kind, pairs)
    return cross(scope.names, left, rel) if len(left.refs) < 12 else left


def star(scope: Scope) -> From:
    """A fact table with each of its dimensions, joined by the dimension's key."""
    rng = scope.rng
    facts = [one for one in scope.bases if _references(one.cols, scope.bases)]
    if not facts:
        return chain(scope)
    fact = scope.names.fresh(rng.choice(facts))
    found, kinds = start(scope.names, fact), rng.choice((("inner",), ("left",), ("inner", "left")))
    references = _references(fact.cols, scope.bases)
    for name, dimension in rng.sample(references, min(len(references), rng.randint(1, 4))):
        ref = next(one for one in found.refs if one.sql.endswith(f".{name}"))
        rel = scope.names.fresh(dimension)
        key = next(iter(dimension.keys[0]))
        found = join(scope.names, found, rel, rng.choice(kinds), [(ref, rel.col(key))])
        if rng.random() < 0.3 and (further := _references(rel.cols, scope.bases)):
            found = _branch(scope, found, rel, further, rng.choice(kinds))
    return replace(found, traits=found.traits.add("star"))


def _branch(scope: Scope, found: From, rel: Rel, further: list[tuple[str, Rel]], kind: str) -> From:
    """A dimension of a dimension."""
    name, dimension = scope.rng.choice(further)
    other = scope.names.fresh(dimension)
    ref = next(one for one in found.refs if one.col.ident == rel.col(name).ident)
    found = join(scope.names, found, other, kind, [(ref, other.col(next(iter(dimension.keys[0]))))])
    return replace(found, traits=found.traits.add("snowflake"))


def _references(cols: Sequence[Col], bases: Sequence[Rel]) -> list[tuple[str, Rel]]:
    """(column, table that it refers to by that table's one key column)."""
    found = []
    for col in cols:
        for rel in bases:
            key = rel.keys[0] if rel.keys else frozenset()
            if len(key) == 1 and (other := rel.col(next(iter(key)))).hint and other.hint == col.hint:
                found += [(col.name, rel)] if rel.item == f"<<{col.hint}>>" and col.name != other.name else []
    return found


def self_join(scope: Scope) -> From:
    """A table with itself."""
    rel = scope.base()
    found = start(scope.names, rel)
    other = scope.names.fresh(rel)
    kind = scope.rng.choice(("inner", "left", "left", "right", "full", "semi", "anti"))
    own = [(ref, col) for ref in found.refs for col in other.cols if comparable(ref.col, col)]
    hinted = [pair for pair in own if pair[0].col.hint and pair[0].col.hint == pair[1].hint]
    crossed = [pair for pair in hinted if not pair[0].sql.endswith(f".{pair[1].name}")]
    pool = crossed if crossed and scope.rng.random() < 0.8 else own
    if not pool:
        return chain(scope)
    found = join(scope.names, found, other, kind, [scope.rng.choice(pool)])
    return replace(found, traits=found.traits.add("self join"))


def two_roles(scope: Scope) -> From:
    """One table joined twice to another, by different columns."""
    rng = scope.rng
    found, role = start(scope.names, scope.base()), scope.base()
    pool = [(ref, col) for ref in found.refs for col in role.cols if comparable(ref.col, col)]
    hinted = [pair for pair in pool if pair[0].col.hint and pair[0].col.hint == pair[1].hint]
    pool = hinted if len(hinted) > 1 and rng.random() < 0.8 else pool
    if len(pool) < 2:
        return self_join(scope)
    for ref, col in rng.sample(pool, 2):
        found = join(
            scope.names, found, scope.names.fresh(role), rng.choice(("left", "left", "inner")), [(ref, col)]
        )
    return replace(found, traits=found.traits.add("two roles"))


def with_values(scope: Scope) -> From:
    """A lookup table in the text, joined by equality or range."""
    rng, found = scope.rng, single(scope)
    ints = [ref for ref in found.refs if ref.col.type in ("int", "bigint")]
    if not ints:
        return found
    ref, ident, other = rng.choice(ints), scope.names.ident(), scope.names.ident()
    if rng.random() < 0.6:
        item = "(select * from (values (1, 'one'), (2, 'two'), (3, 'three'), (5, 'five')) v (n, label))"
        cols = (Col("n", "int", False, ident, frozenset()), Col("label", "string", False, other, frozenset()))
        rel = Rel(item, cols, (frozenset({"n"}),), Traits(frozenset({"values"})))
        return join(
            scope.names, found, rel, rng.choice(("inner", "left", "semi", "anti")), [(ref, rel.cols[0])]
        )
    item = "(select * from (values (0, 3, 'low'), (4, 6, 'mid'), (7, 99, 'high')) v (lo, hi, band))"
    bounds = tuple(
        Col(name, kind, False, scope.names.ident(), frozenset())
        for name, kind in (("lo", "int"), ("hi", "int"), ("band", "string"))
    )
    rel = Rel(item, bounds, (frozenset({"band"}), frozenset({"lo"})), Traits(frozenset({"values"})))
    return cross(scope.names, found, rel, f"{ref.sql} between {{alias}}.lo and {{alias}}.hi")


def non_equi(scope: Scope) -> From:
    """Joined by an order of two columns."""
    rng, found, rel = scope.rng, start(scope.names, scope.base()), scope.base()
    pool = [(ref, col) for ref in found.refs for col in rel.cols if comparable(ref.col, col)]
    if not pool:
        return chain(scope)
    ref, col = rng.choice(pool)
    on = f"{ref.sql} {rng.choice(('<', '<=', '<>'))} {{alias}}.{col.name}"
    return cross(scope.names, found, rel, on)


def comma(scope: Scope) -> From:
    """The old spelling: items with commas, equality in WHERE."""
    found, rel = start(scope.names, scope.base()), scope.base()
    pairs = pick_pairs(scope.rng, found, rel)[:1]
    if not pairs:
        return chain(scope)
    ref, col = pairs[0]
    joined = cross(scope.names, found, rel)
    alias = joined.refs[-1].sql.partition(".")[0]
    traits = found.traits.join(rel.traits).add("comma join")
    if ref.col.derived or col.derived:
        traits = traits.add(reason="join by a derived column")
    text = f"{found.text}, {rel.item} {alias}"
    return replace(joined, text=text, traits=traits, where=(f"{ref.sql} = {alias}.{col.name}",))


def exploded(scope: Scope) -> From:
    """One row per element of an array."""
    found = single(scope)
    ints = [ref for ref in found.refs if ref.col.type == "int"]
    if not ints:
        return found
    alias, ref = scope.names.alias(), scope.rng.choice(ints)
    spark = f"lateral view explode(array({ref.sql}, {ref.sql} + 1, 100)) {alias} as w"
    duckdb = f", lateral (select unnest([{ref.sql}, {ref.sql} + 1, 100]) as w) {alias}"
    col = Col("w", "int", True, scope.names.ident(), ref.col.deps | {ref.col.ident}, ref.col.derived)
    text = f"{found.text} [[{spark}||{duckdb}]]"
    return replace(
        found,
        text=text,
        refs=(*found.refs, Ref(f"{alias}.w", col)),
        keys=(),
        traits=found.traits.add("explode"),
    )


def merged(scope: Scope) -> From:
    """Two relations side by side, the key from whichever has it."""
    rng = scope.rng
    left, right = scope.source(), scope.source()
    pool = [
        (left.col(one), right.col(other))
        for first in left.keys
        for second in right.keys
        if len(first) == len(second) == 1
        for one in first
        for other in second
        if comparable(left.col(one), right.col(other))
    ]
    if not pool:
        return chain(scope)
    one, two = rng.choice(pool)
    a, b = scope.names.alias(), scope.names.alias()
    key = replace(one, name="k", ident=scope.names.ident(), deps=one.deps | two.deps | {one.ident, two.ident},
                  derived=one.derived or two.derived, null=one.null or two.null)  # fmt: skip
    items, cols = [f"coalesce({a}.{one.name}, {b}.{two.name}) as k"], [key]
    for alias, rel, head in ((a, left, "l"), (b, right, "r")):
        for col in rng.sample(rel.cols, min(len(rel.cols), rng.randint(1, 3))):
            items.append(f"{alias}.{col.name} as {head}_{col.name}")
            cols.append(replace(col, name=f"{head}_{col.name}", null=True))
    join_text = f"{left.item} {a} full join {right.item} {b} on {a}.{one.name} = {b}.{two.name}"
    reason = "join by a derived column" if key.derived else None
    traits = left.traits.join(right.traits).add("full join", "merged key", reason=reason)
    keys = () if one.null or two.null else (frozenset({"k"}),)
    return start(scope.names, Rel(f"(select {', '.join(items)} from {join_text})", tuple(cols), keys, traits))


def lateral(scope: Scope) -> From:
    """A correlated subquery in FROM."""
    rng, found, rel = scope.rng, start(scope.names, scope.base()), scope.base()
    pairs, values = (
        pick_pairs(rng, found, rel)[:1],
        [one for one in rel.cols if one.type not in ("boolean", "double", "real", "real_group")],
    )
    if not pairs or not values:
        return chain(scope)
    (ref, col), alias, inner = pairs[0], scope.names.alias(), scope.names.alias()
    value = rng.choice(values)
    where = f"where {inner}.{col.name} = {ref.sql}"
    item = f"(select max({inner}.{value.name}) as top, count(*) as n from {rel.item} {inner} {where})"
    made = [
        Col(name, kind, name == "top", scope.names.ident(), frozenset(), derived=True)
        for name, kind in (("top", value.type), ("n", "bigint"))
    ]
    traits = found.traits.join(rel.traits).add("lateral")
    if ref.col.derived or col.derived:
        traits = traits.add(reason="correlation by a derived column")
    refs = (*found.refs, *(Ref(f"{alias}.{one.name}", one) for one in made))
    return replace(found, text=f"{found.text}, lateral {item} {alias}", refs=refs, traits=traits)


def with_total(scope: Scope, found: From | None = None) -> From:
    """Beside a total, which has one row also over none; often with a constant that is part of the key."""
    rng, rel = scope.rng, scope.base()
    found = found or single(scope)
    inner = scope.names.alias()
    refs = [Ref(f"{inner}.{one.name}", one) for one in rel.cols]
    forms = [("count(*)", "bigint")]
    forms += [(f"avg(cast({one.sql} as double))", "double") for one in refs if one.col.type == "int"]
    (made, kind), where = rng.choice(forms), " and ".join(
        condition(rng, refs)[0] for _ in range(rng.randint(1, 4))
    )  # fmt: skip
    item = f"(select 'all' as tag, {made} as whole from {rel.item} {inner} where {where})"
    cols = (
        Col("tag", "string", False, scope.names.ident(), frozenset()),
        Col("whole", kind, kind == "double", scope.names.ident(), frozenset(), derived=True),
    )
    key = frozenset({"tag"}) if rng.random() < 0.7 else frozenset[str]()
    return cross(scope.names, found, Rel(item, cols, (key,), rel.traits.add("total beside")))


def with_look_up(scope: Scope) -> From:
    """With a looked-up value as a column, for keys, groups and filters. What finds nothing has NULL."""
    rng, found = scope.rng, start(scope.names, scope.base())
    made = looked_up(scope, found)
    if made is None or any(one.col.name == "looked" for one in found.refs):
        return chain(scope)
    value, inner, reason = made
    alias = found.text.rpartition(" ")[2]
    cols = tuple(one.col for one in found.refs)
    item = f"(select {alias}.*, {value.text} as looked from {found.text})"
    looked = Col("looked", value.type, True, scope.names.ident(), frozenset(), value.derived)
    traits = found.traits.join(replace(inner, windows=())).add("look-up in from", reason=reason)
    if inner.windows:
        traits = traits.add(reason="window in a subquery")
    keys = tuple(frozenset(one.partition(".")[2] for one in key) for key in found.keys)
    if keys and rng.random() < 0.5:
        keys = tuple(key | {"looked"} for key in keys)
    return start(scope.names, Rel(item, (*cols, looked), keys, traits))


def looked_up(scope: Scope, found: From) -> tuple[Expr, Traits, str | None] | None:
    """A column of the one row with a key, at times of distinct rows: Spark joins it by LeftSingle."""
    rng = scope.rng
    rels = [scope.source() if rng.random() < 0.5 else scope.base() for _ in range(6)]
    made = [
        (rel, (ref, rel.col(name)))
        for rel in rels
        for key in rel.keys
        if len(key) == 1
        for name in key
        for ref in found.refs
        if comparable(ref.col, rel.col(name))
    ]
    hinted = [one for one in made if one[1][0].col.hint and one[1][0].col.hint == one[1][1].hint]
    if not made:
        return None
    rel, (ref, col) = rng.choice(hinted if hinted and rng.random() < 0.7 else made)
    alias, value = scope.names.alias(), rng.choice(rel.cols)
    item, value = _distinct(scope, rel, col) if rng.random() < 0.3 else (rel.item, value)
    text = f"(select {alias}.{value.name} from {item} {alias} where {alias}.{col.name} = {ref.sql})"
    expr = Expr(text, value.type, True, frozenset(), value.derived)
    reason = "correlation by a derived column" if ref.col.derived or col.derived else None
    return expr, rel.traits.add("look-up"), reason


def _distinct(scope: Scope, rel: Rel, col: Col) -> tuple[str, Col]:
    """Each key once, and the key's column: no other has one value per key."""
    alias = scope.names.alias()
    group = scope.rng.choice(("distinct", "group by"))
    name = f"{alias}.{col.name}"
    if group == "distinct":
        return f"(select distinct {name} from {rel.item} {alias})", col.grouped()
    return f"(select {name} from {rel.item} {alias} group by {name})", col.grouped()


def pipe(scope: Scope) -> From:
    """A relation behind `|>`."""
    rng, rel = scope.rng, scope.base()
    alias = scope.names.alias()
    refs = [Ref(f"{alias}.{one.name}", one) for one in rel.cols]
    where, _ = condition(rng, refs)
    items = ", ".join(f"{one.sql} as {one.col.name}" for one in refs)
    head = f"[[from||select {items} from]] {rel.item} {alias} [[|> where||where]] {where}"
    piped = replace(rel, item=f"({head} [[|> select {items}||]])", traits=rel.traits.add("pipe"), leads=())
    found = start(scope.names, piped)
    return with_total(scope, found) if rng.random() < 0.1 else found


FROMS: tuple[tuple[Callable[[Scope], From], int], ...] = (
    (single, 22), (chain, 30), (star, 20), (self_join, 10), (two_roles, 8),
    (with_values, 4), (non_equi, 2), (comma, 4), (exploded, 4), (merged, 5), (lateral, 2), (with_total, 5), (pipe, 3),
    (with_look_up, 5),
)  # fmt: skip


def from_clause(scope: Scope) -> From:
    """Any of them."""
    makers, weights = zip(*FROMS, strict=True)
    maker: Callable[[Scope], From] = scope.rng.choices(makers, weights)[0]
    return maker(scope)
