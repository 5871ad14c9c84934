"""Queries whose keys and conditions follow from results of aggregates and windows, and from totals as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from integration_tests.soak.query_attack.expressions import Expr, condition, literal, plain
from integration_tests.soak.query_attack.froms import Scope
from integration_tests.soak.query_attack.heads import Out, add_item, projection, rel_of, windowed
from integration_tests.soak.query_attack.joins import comparable, join, pick_pairs, start
from integration_tests.soak.query_attack.linear import added
from integration_tests.soak.query_attack.relation import From, Ref, Rel

_ORDERED = ("int", "bigint", "decimal", "date", "string")
_FEATURE = "of results"


def of_results(scope: Scope) -> Rel:
    """One of five shapes over one or two tables."""
    found = _tables(scope)
    makers: tuple[Callable[[Scope, From], Rel], ...] = (having, of_counts, joined, first_rows, compared)
    made = scope.rng.choice(makers)(scope, found)
    return replace(made, traits=made.traits.add(_FEATURE, reason=_FEATURE))


def _tables(scope: Scope) -> From:
    rng = scope.rng
    found = start(scope.names, scope.base())
    if rng.random() < 0.4:
        rel = scope.base()
        pairs = pick_pairs(rng, found, rel)
        found = join(scope.names, found, rel, rng.choice(("inner", "left")), pairs) if pairs else found
    if rng.random() < 0.4:
        found = replace(found, where=(*found.where, condition(rng, found.refs)[0]))
    return found


def _total(scope: Scope, kind: str) -> str:
    """A total of a type over some rows of a table, as a value; NULL of none, but for counts."""
    rng, rel, alias = scope.rng, scope.base(), scope.names.alias()
    values = [one.name for one in rel.cols if one.type == kind]
    function = (
        f"{rng.choice(('max', 'min'))}({alias}.{rng.choice(values)})"
        if values
        else f"max({literal(rng, kind)})"
    )
    if kind == "bigint" and (not values or rng.random() < 0.5):
        function = f"count(*) - {rng.randint(0, 4)}"
    refs = [Ref(f"{alias}.{one.name}", one) for one in rel.cols]
    where = f" where {condition(rng, refs)[0]}" if rng.random() < 0.6 else ""
    return f"(select {function} from {rel.item} {alias}{where})"


def having(scope: Scope, found: From) -> Rel:
    """Groups with more rows than a total."""
    made, sign = added(scope, found), scope.rng.choice((">", "<=", "="))
    return replace(made, item=f"{made.item[:-1]} having count(*) {sign} {_total(scope, 'bigint')})")


def compared(scope: Scope, found: From) -> Rel:
    """Rows beside a total: a condition."""
    ref = scope.rng.choice([one for one in found.refs if one.col.type in _ORDERED] or list(found.refs))
    sign = scope.rng.choice(("<", ">=", "="))
    term = f"{ref.sql} {sign} {_total(scope, ref.col.type)}" if ref.col.type in _ORDERED else "true"
    return projection(scope, replace(found, where=(*found.where, term)))


def _derived(scope: Scope, found: From) -> tuple[From, list[Ref]]:
    """Groups or windows as a table, and the columns that are results of functions."""
    inner = (added if scope.rng.random() < 0.6 else windowed)(scope, found)
    outer = start(scope.names, inner)
    return outer, [one for one in outer.refs if one.col.derived and one.col.type in _ORDERED]


def of_counts(scope: Scope, found: From) -> Rel:
    """GROUP BY the result of a function."""
    outer, results = _derived(scope, found)
    if not results:
        return having(scope, found)
    by, outs = scope.rng.choice(results), list[Out]()
    outer = replace(outer, where=(*outer.where, f"{by.sql} is not null"))
    name = add_item(scope.rng, outs, replace(plain(by), null=False)).name
    add_item(scope.rng, outs, Expr("count(*)", "bigint", False, frozenset(), True))
    rest = f"{outer.clause()} group by {by.sql}"
    return rel_of(scope, outs, rest, [frozenset({name})], outer.traits.add("group by a result"))


def joined(scope: Scope, found: From) -> Rel:
    """A join on the result of a function."""
    outer, results = _derived(scope, found)
    rel = scope.base()
    pairs = [(one, col) for one in results for col in rel.cols if comparable(one.col, col)]
    if not pairs:
        return of_counts(scope, found)
    kind = scope.rng.choice(("inner", "left", "semi", "anti", "right"))
    return projection(scope, join(scope.names, outer, rel, kind, [scope.rng.choice(pairs)]))


def first_rows(scope: Scope, found: From) -> Rel:
    """The first rows of all, by their places."""
    rng, outs = scope.rng, list[Out]()
    if not found.keys:
        return having(scope, found)
    key = min(found.keys, key=len)
    first = rng.choice(found.refs).sql
    order = ", ".join([f"{first} desc nulls last", *(f"{one} asc nulls first" for one in sorted(key))])
    outs.append(
        Out("place", Expr(f"row_number() over (order by {order})", "bigint", False, frozenset(), True))
    )
    for ref in rng.sample(found.refs, min(len(found.refs), 3)):
        add_item(rng, outs, plain(ref))
    inner = rel_of(scope, outs, found.clause(), [frozenset({"place"})], found.traits.add("first rows"))
    alias = scope.names.alias()
    text = f"(select * from {inner.item} {alias} where {alias}.place <= {rng.randint(1, 6)})"
    return replace(inner, item=text, leads=())
