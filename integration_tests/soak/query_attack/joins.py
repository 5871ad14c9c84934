"""FROM clauses built join by join, with the unique keys and NULLs that follow from each kind of join."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from integration_tests.soak.query_attack.expressions import caseless, condition
from integration_tests.soak.query_attack.relation import Col, From, Ref, Rel, Traits, substitute

Pair = tuple[Ref, Col]
KINDS = ("inner", "inner", "left", "left", "right", "full", "semi", "anti")
_SQL = {"inner": "join", "left": "left join", "right": "right join", "full": "full join",
        "semi": "semi join", "anti": "anti join"}  # fmt: skip
_CLASS = {"int": "number", "bigint": "number", "decimal": "number", "real_group": "real"}


@dataclass
class Names:
    """Aliases and idents that nobody has used yet."""

    rng: random.Random
    aliases: int = 0
    idents: int = field(default=0)

    def alias(self) -> str:
        """Of an item in FROM."""
        self.aliases += 1
        return f"q{self.aliases}"

    def ident(self) -> int:
        """Of a column."""
        self.idents += 1
        return self.idents

    def fresh(self, rel: Rel) -> Rel:
        """The same relation once more: another occurrence has other idents."""
        known: set[int] = set().union(*({one.ident} | one.deps for one in rel.cols), *rel.traits.windows)
        cols, traits = substitute(rel.cols, rel.traits, {one: self.ident() for one in sorted(known)})
        return replace(rel, cols=cols, traits=traits)


def start(names: Names, rel: Rel) -> From:
    """FROM one item."""
    alias = names.alias()
    refs = tuple(Ref(f"{alias}.{one.name}", one) for one in rel.cols)
    keys = tuple(frozenset(f"{alias}.{name}" for name in key) for key in rel.keys)
    return From(f"{rel.item} {alias}", refs, keys, rel.traits)


def comparable(one: Col, other: Col) -> bool:
    """Whether `=` of the two is a sensible join."""
    return one.type not in ("double", "boolean") and _CLASS.get(one.type, one.type) == _CLASS.get(
        other.type, other.type
    )


def pick_pairs(rng: random.Random, left: From, rel: Rel) -> list[Pair]:
    """Columns to join by: mostly a foreign key and its table's id, else any of a type."""
    found = [(ref, col) for ref in left.refs for col in rel.cols if comparable(ref.col, col)]
    hinted = [pair for pair in found if pair[0].col.hint and pair[0].col.hint == pair[1].hint]
    close = [pair for pair in hinted if not pair[0].col.derived and not pair[1].derived]
    solid = [pair for pair in found if not pair[0].col.derived and not pair[1].derived]
    loose = solid if solid and rng.random() < 0.94 else found
    pool = close if close and rng.random() < 0.85 else loose
    if not pool:
        return []
    pairs = [rng.choice(pool)]
    if rng.random() < 0.15:
        pairs.append(rng.choice(loose))
    return pairs


def join(names: Names, left: From, rel: Rel, kind: str, pairs: Sequence[Pair]) -> From:
    """`left` with one item more, by equal columns."""
    rng, alias = names.rng, names.alias()
    spoiled, terms = False, []
    for ref, col in pairs:
        text, spoils = _equality(rng, ref, f"{alias}.{col.name}", col)
        spoiled |= spoils
        terms.append(text)
    traits = left.traits.join(rel.traits).add(f"{kind} join")
    if any(ref.col.derived or col.derived for ref, col in pairs):
        traits = traits.add(reason="join by a derived column")
    plain_pairs = all(
        term == f"{ref.sql} = {alias}.{col.name}" for term, (ref, col) in zip(terms, pairs, strict=True)
    )
    if not plain_pairs:
        traits = traits.add("join by an expression")
    right = [Ref(f"{alias}.{one.name}", one) for one in rel.cols]
    if rng.random() < 0.2:
        text, _ = condition(rng, [*left.refs, *right] if rng.random() < 0.5 else right)
        terms.append(text)
        traits = traits.add("join with a condition")
    item = f"{left.text} {_SQL[kind]} {rel.item} {alias} on {' and '.join(terms)}"
    if plain_pairs and len(pairs) == 1 and len(terms) == 1 and kind != "full" and rng.random() < 0.12:
        using = _using(left, rel, kind, pairs[0], alias)
        item, traits = (using, traits.add("using")) if using else (item, traits)
    joined = _joined(left, rel, kind, alias, pairs, spoiled=spoiled, plain=plain_pairs)
    return replace(joined, text=item, traits=_equated(joined, traits, kind, pairs, plain_pairs))


def _using(left: From, rel: Rel, kind: str, pair: Pair, alias: str) -> str | None:
    ref, col = pair
    same = [one for one in left.refs if one.sql.endswith(f".{col.name}")]
    if not ref.sql.endswith(f".{col.name}") or len(same) != 1:
        return None
    return f"{left.text} {_SQL[kind]} {rel.item} {alias} using ({col.name})"


def _equality(rng: random.Random, ref: Ref, right: str, col: Col) -> tuple[str, bool]:
    """The term, and whether it joins a row by other than its column's own value on the right."""
    roll = rng.random()
    if roll < 0.86:
        return f"{ref.sql} = {right}", False
    if roll < 0.9:
        return f"{right} is not distinct from {ref.sql}", False
    if ref.col.type == "string":
        return rng.choice((f"lower({ref.sql}) = lower({right})", caseless(ref.sql, right))), True
    if ref.col.type in ("int", "bigint"):
        return rng.choice(((f"{ref.sql} + 1 = {right}", False), (f"coalesce({ref.sql}, 2) = {right}", False),
                           (f"{ref.sql} % 4 = {right} % 4", True)))  # fmt: skip
    return f"{ref.sql} = {right}", False


def _nullable(refs: Sequence[Ref]) -> tuple[Ref, ...]:
    return tuple(replace(one, col=replace(one.col, null=True)) for one in refs)


def _joined(
    left: From, rel: Rel, kind: str, alias: str, pairs: Sequence[Pair], *, spoiled: bool, plain: bool
) -> From:
    """Columns and keys after the join."""
    if kind in ("semi", "anti"):
        return left
    right = tuple(Ref(f"{alias}.{one.name}", one) for one in rel.cols)
    right_keys = [frozenset(f"{alias}.{name}" for name in key) for key in rel.keys]
    by_left, by_right = {ref.sql for ref, _ in pairs}, {f"{alias}.{col.name}" for _, col in pairs}
    keys = [one | other for one in left.keys for other in right_keys]
    if not spoiled and any(key <= by_right for key in right_keys) and kind in ("inner", "left"):
        keys = [*left.keys, *keys]
    if plain and any(key <= by_left for key in left.keys) and kind in ("inner", "right"):
        keys = [*right_keys, *keys]  # an expression would join several left rows with one right row
    refs = left.refs
    if kind in ("right", "full"):
        refs = _nullable(refs)
    if kind in ("left", "full"):
        right = _nullable(right)
    return From(left.text, (*refs, *right), tuple(dict.fromkeys(keys))[:6], left.traits, left.where)


def _equated(joined: From, traits: Traits, kind: str, pairs: Sequence[Pair], plain_pairs: bool) -> Traits:
    """Lineage of columns is by occurrence; what an inner join equates is one value for partitions of windows."""
    if kind not in ("inner", "semi") or not plain_pairs:
        return traits
    same = {col.ident: ref.col.ident for ref, col in pairs}
    windows = tuple(one | {same[ident] for ident in one if ident in same} for one in traits.windows)
    both = {ref.col.ident: col.ident for ref, col in pairs}
    windows = tuple(one | {both[ident] for ident in one if ident in both} for one in windows)
    return replace(traits, windows=windows)


def cross(names: Names, left: From, rel: Rel, on: str | None = None) -> From:
    """Without an equality: `on` compares columns of both sides, as `{alias}`."""
    alias = names.alias()
    right = tuple(Ref(f"{alias}.{one.name}", one) for one in rel.cols)
    keys = tuple(
        one | frozenset(f"{alias}.{name}" for name in other) for one in left.keys for other in rel.keys
    )
    reason = None if left.traits.constant or rel.traits.constant else "join without an equality"
    feature = "cross join" if on is None else "non-equi join"
    text = f"{left.text} cross join {rel.item} {alias}"
    if on is not None:
        text = f"{left.text} join {rel.item} {alias} on {on.format(alias=alias)}"
    traits = left.traits.join(rel.traits).add(feature, reason=reason)
    return From(text, (*left.refs, *right), keys[:6], traits, left.where)
