"""WHERE: conditions and subqueries of every kind, correlated and not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from integration_tests.soak.query_attack.expressions import Expr, condition, literal
from integration_tests.soak.query_attack.froms import Scope, looked_up
from integration_tests.soak.query_attack.joins import Pair, comparable, pick_pairs
from integration_tests.soak.query_attack.relation import NUMBERS, From, Ref, Rel, Traits

_TOP = ("int", "bigint", "decimal", "date", "string")


def filtered(scope: Scope, found: From) -> From:
    """With zero to three more terms."""
    rng = scope.rng
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        text, _ = condition(rng, found.refs)
        found = replace(found, where=(*found.where, text))
    if rng.random() < 0.3:
        makers, weights = zip(*_SUBQUERIES, strict=True)
        maker: Callable[[Scope, From], From] = rng.choices(makers, weights)[0]
        found = maker(scope, found)
    return found


def _with(found: From, term: str, inner: Traits, feature: str, reason: str | None = None) -> From:
    traits = found.traits.join(replace(inner, windows=()))
    if inner.windows:
        traits = traits.add(reason="window in a subquery")
    return replace(found, where=(*found.where, term), traits=traits.add(feature, reason=reason))


def _picked(scope: Scope, found: From) -> tuple[Rel, Pair, str] | None:
    """A relation for a subquery, the columns that correlate it, its alias."""
    rel = scope.source() if scope.rng.random() < 0.4 else scope.base()
    pairs = pick_pairs(scope.rng, found, rel)
    return (rel, pairs[0], scope.names.alias()) if pairs else None


def _derived(pair: Pair) -> str | None:
    return "correlation by a derived column" if pair[0].col.derived or pair[1].derived else None


def _exists(scope: Scope, found: From) -> From:
    picked = _picked(scope, found)
    if picked is None:
        return found
    rel, (ref, col), alias = picked
    rng = scope.rng
    terms = [f"{alias}.{col.name} = {ref.sql}"]
    if rng.random() < 0.4:
        terms.append(condition(rng, [Ref(f"{alias}.{one.name}", one) for one in rel.cols])[0])
    if rng.random() < 0.2:
        others = [(one, two) for one in found.refs for two in rel.cols if comparable(one.col, two)]
        left, right = rng.choice(others)
        terms.append(f"{alias}.{right.name} {rng.choice(('<', '>', '<>'))} {left.sql}")
    negated = rng.choice(("", "not "))
    term = f"{negated}exists (select 1 from {rel.item} {alias} where {' and '.join(terms)})"
    feature = f"{negated}exists"
    if rng.random() < 0.15:
        term, feature = f"({term} or {condition(rng, found.refs)[0]})", "exists below or"
    return _with(found, term, rel.traits, feature, _derived((ref, col)))


def _in(scope: Scope, found: From) -> From:
    picked = _picked(scope, found)
    if picked is None:
        return found
    rel, (ref, col), alias = picked
    rng = scope.rng
    where = f" where {condition(rng, [Ref(f'{alias}.{one.name}', one) for one in rel.cols])[0]}"
    where = where if rng.random() < 0.5 else ""
    if rng.random() < 0.2 and (both := _two(scope, found, rel, alias)) is not None:
        return _with(found, both, rel.traits, "in by two columns", _derived((ref, col)))
    if rng.random() < 0.75:
        term = f"{ref.sql} in (select {alias}.{col.name} from {rel.item} {alias}{where})"
        if rng.random() < 0.12:
            term = f"({term} or {condition(rng, found.refs)[0]})"
            return _with(found, term, rel.traits, "in below or", _derived((ref, col)))
        return _with(found, term, rel.traits, "in", _derived((ref, col)))
    term = f"{ref.sql} not in (select {alias}.{col.name} from {rel.item} {alias}{where})"
    return _with(found, term, rel.traits, "not in", "NOT IN")


def _two(scope: Scope, found: From, rel: Rel, alias: str) -> str | None:
    pool = [(one, two) for one in found.refs for two in rel.cols if comparable(one.col, two)]
    pool = [pair for pair in pool if not pair[0].col.derived and not pair[1].derived]
    if len(pool) < 2:
        return None
    (a, x), (b, y) = scope.rng.sample(pool, 2)
    return f"({a.sql}, {b.sql}) in (select {alias}.{x.name}, {alias}.{y.name} from {rel.item} {alias})"


def _scalar_of(scope: Scope, found: From, *, correlated: bool) -> tuple[Expr, Traits, str | None] | None:
    """An aggregate of another relation."""
    picked = _picked(scope, found)
    if picked is None:
        return None
    rel, (ref, col), alias = picked
    values = [one for one in rel.cols if one.type in _TOP]
    value = scope.rng.choice(values) if values else None
    function = "count(*)" if value is None else f"{scope.rng.choice(('max', 'min'))}({alias}.{value.name})"
    kind = "bigint" if value is None else value.type
    if value is not None and scope.rng.random() < 0.2:
        function, kind = f"count({alias}.{value.name})", "bigint"
    where = f" where {alias}.{col.name} = {ref.sql}" if correlated else ""
    text = f"(select {function} from {rel.item} {alias}{where})"
    reason = (
        _derived((ref, col))
        if correlated
        else None
        if rel.traits.constant
        else "subquery without correlation"
    )
    return Expr(text, kind, True, frozenset(), True), rel.traits, reason


def scalar_column(scope: Scope, found: From) -> tuple[From, Expr] | None:
    """For the SELECT list: a correlated scalar subquery."""
    looks_up = scope.rng.random() < 0.6
    made = looked_up(scope, found) if looks_up else _scalar_of(scope, found, correlated=True)
    if made is None:
        return None
    expr, inner, reason = made
    fresh = _with(found, "true", inner, "scalar subquery", reason)
    return replace(fresh, where=found.where), expr


def _scalar(scope: Scope, found: From) -> From:
    correlated = scope.rng.random() < 0.6
    made = _scalar_of(scope, found, correlated=correlated)
    if made is None:
        return found
    expr, inner, reason = made
    refs = [one for one in found.refs if _is_like(one, expr.type)]
    left = scope.rng.choice(refs).sql if refs and scope.rng.random() < 0.8 else literal(scope.rng, expr.type)
    feature = "scalar subquery in where" if correlated else "uncorrelated scalar"
    return _with(
        found, f"{left} {scope.rng.choice(('<', '<=', '>=', '='))} {expr.text}", inner, feature, reason
    )


def _is_like(ref: Ref, kind: str) -> bool:
    return ref.col.type == kind or (ref.col.type in NUMBERS[:3] and kind in NUMBERS[:3])


def _uncorrelated(scope: Scope, found: From) -> From:
    rel, alias = scope.base(), scope.names.alias()
    text, _ = condition(scope.rng, [Ref(f"{alias}.{one.name}", one) for one in rel.cols])
    term = f"{scope.rng.choice(('', 'not '))}exists (select 1 from {rel.item} {alias} where {text})"
    return _with(found, term, rel.traits, "uncorrelated exists", "subquery without correlation")


_SUBQUERIES: tuple[tuple[Callable[[Scope, From], From], int], ...] = (
    (_exists, 45), (_in, 30), (_scalar, 20), (_uncorrelated, 5),
)  # fmt: skip
