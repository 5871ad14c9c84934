"""Whole queries: blocks of FROM, WHERE and SELECT, set operations, CTEs, limits; then a unique key for the result."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from integration_tests.soak.query_attack.expressions import condition
from integration_tests.soak.query_attack.filters import filtered
from integration_tests.soak.query_attack.froms import Scope, from_clause
from integration_tests.soak.query_attack.heads import head, projection
from integration_tests.soak.query_attack.joins import Names, join, pick_pairs, start
from integration_tests.soak.query_attack.linear import linear
from integration_tests.soak.query_attack.relation import Col, Ref, Rel, Traits
from integration_tests.soak.query_attack.results import of_results
from integration_tests.soak.query_attack.tables import TableDef

LINEAR, TIME = 0.35, "time of the run"
RESULTS = 0.25  # of the others
# what stands for NULL in a key; the data has no such value
_NONE = {"int": "-999", "bigint": "-999", "decimal": "-999.25", "string": "'~'", "date": "date '1900-01-01'",
         "real": "cast(-999 as double)", "real_group": "cast(-999 as double)"}  # fmt: skip


@dataclass(frozen=True)
class View:
    """`texts`: the filter of the first is replaced by the others when the view changes."""

    name: str
    ephemeral: bool
    texts: tuple[str, ...]
    rel: Rel


@dataclass(frozen=True)
class Model:
    """A changed_keys model. `local`: a human would say that a change touches few of its keys."""

    name: str
    text: str
    key: tuple[str, ...]
    rel: Rel
    reasons: frozenset[str]
    affected_by: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def local(self) -> bool:
        """No clause reaches beyond the rows that equalities lead to."""
        return not self.reasons

    @property
    def features(self) -> frozenset[str]:
        """Kinds of clauses."""
        uses_time = any(name in self.text for name in ("current_date()", "localtimestamp()"))
        return self.rel.traits.features | ({TIME} if uses_time else set())


@dataclass
class Queries:
    """Makes views and models over tables. `linear`: share of models whose changes add up."""

    rng: random.Random
    bases: list[Rel]
    linear: float = LINEAR
    names: Names = field(init=False)

    def __post_init__(self) -> None:
        self.names = Names(self.rng)

    @staticmethod
    def over(rng: random.Random, tables: Sequence[TableDef], linear: float = LINEAR) -> Queries:
        """Over tables alone; views and models are added by `add`."""
        made = Queries(rng, [], linear)
        made.bases += [_base(made.names, table) for table in tables]
        return made

    def add(self, rel: Rel) -> None:
        """A view or model that later queries may read."""
        self.bases.append(rel)

    def _scope(self, depth: int) -> Scope:
        def source() -> Rel:
            if depth > 0 and self.rng.random() < 0.3:
                return self.query(depth - 1)
            return self.names.fresh(self.rng.choice(self.bases))

        return Scope(self.names, source, tuple(self.bases))

    def block(self, depth: int) -> Rel:
        """One SELECT."""
        scope = self._scope(depth)
        return head(scope, filtered(scope, from_clause(scope)))

    def query(self, depth: int) -> Rel:
        """A SELECT or something around SELECTs."""
        roll = self.rng.random()
        if depth > 0 and roll < 0.12:
            return self._set_operation(depth - 1)
        if depth > 0 and roll < 0.2:
            return self._cte(depth - 1)
        if depth > 0 and roll < 0.23:
            return self._limited(depth - 1)
        return self.block(depth)

    def view(self, name: str) -> View:
        """A query with a filter that can change."""
        scope, rng = self._scope(0), self.rng
        found = start(self.names, self.names.fresh(rng.choice(self.bases)))
        if rng.random() < 0.35:
            found = filtered(scope, from_clause(scope))
        marker = "<<%>>"
        filtered_once = replace(found, where=(*found.where, marker))
        made = projection(scope, filtered_once) if rng.random() < 0.8 else head(scope, filtered_once)
        filters = {
            condition(rng, [one for one in found.refs if not one.col.derived] or found.refs)[0]
            for _ in range(2)
        }
        texts = tuple(made.text.replace(marker, one) for one in ("true", *sorted(filters)))
        rel = replace(made, item=f"<<{name}>>", traits=made.traits.add("view"), leads=())
        return View(name, rng.random() < 0.3, texts, rel)

    # --- around SELECTs ---

    def _set_operation(self, depth: int) -> Rel:
        rng, left, right = self.rng, self.block(depth), self.block(depth)
        if rng.random() < 0.25:
            right = self.names.fresh(left)
        pairs = _same_types(rng, left.cols, right.cols)
        if not pairs:
            return left
        first, second = (start(self.names, one) for one in (left, right))
        refs = [(_ref(first.refs, one), _ref(second.refs, two)) for one, two in pairs]
        names = _distinct_names([one.name for one, _ in pairs])
        cols = tuple(self._both(name, one, two) for name, (one, two) in zip(names, pairs, strict=True))
        traits = left.traits.join(right.traits)
        if any(one.derived for one in cols):
            traits = traits.add(reason="set operation over a derived column")
        if traits.windows:
            traits = traits.add(reason="window below a set operation")
        word = rng.choice(("union all", "union all", "union", "intersect", "except", "except all"))
        if word != "union all":
            cols = tuple(one.grouped() for one in cols)
        sides = [
            ", ".join(f"{pair[at].sql} as {name}" for name, pair in zip(names, refs, strict=True))
            for at in (0, 1)
        ]
        keys: tuple[frozenset[str], ...] = () if word == "except all" else (frozenset(names),)
        if word == "union all":
            sides = [f"'{side}' as side, {items}" for side, items in zip(("l", "r"), sides, strict=True)]
            cols = (Col("side", "string", False, self.names.ident(), frozenset()), *cols)
            keys = _union_keys(left, right, pairs, names)
        text = f"(select {sides[0]} {first.clause()} {word} select {sides[1]} {second.clause()})"
        return Rel(text, cols, keys, traits.add(word))

    def _both(self, name: str, one: Col, two: Col) -> Col:
        hint = one.hint if one.hint == two.hint else None
        kind = one.type if one.type == two.type else "bigint"
        deps = (one.deps | {one.ident}) | (two.deps | {two.ident})
        return Col(
            name, kind, one.null or two.null, self.names.ident(), deps, one.derived or two.derived, hint
        )

    def _cte(self, depth: int) -> Rel:
        """WITH, read once or twice."""
        rng, inner, name = self.rng, self.block(depth), f"c{self.names.alias()}"
        scope = self._scope(depth)
        known = replace(inner, item=name)
        found, feature = start(self.names, known), "cte"
        if rng.random() < 0.5:
            other = self.names.fresh(known)
            pairs = pick_pairs(rng, found, other)
            if pairs:
                kind = rng.choice(("inner", "left", "semi", "anti"))
                found, feature = join(self.names, found, other, kind, pairs), "cte twice"
        made = head(scope, filtered(scope, found))
        item = (
            f"(with {name} as {inner.item if inner.item.startswith('(') else f'({inner.text})'} {made.text})"
        )
        return replace(made, item=item, traits=made.traits.add(feature), leads=())

    def _limited(self, depth: int) -> Rel:
        """ORDER BY a key LIMIT."""
        inner = self.block(depth)
        if not inner.keys:
            return inner
        order = [f"{one} asc nulls first" for one in sorted(self.rng.choice(inner.keys))]
        first = self.rng.choice(inner.cols).name
        way = self.rng.choice(("desc nulls last", "asc nulls first"))
        terms = ", ".join([f"{first} {way}", *order])
        alias, count = self.names.alias(), self.rng.randint(1, 6)
        text = f"(select * from {inner.item} {alias} order by {terms} limit {count})"
        return replace(inner, item=text, traits=inner.traits.add("limit", reason="LIMIT"), leads=())

    # --- a model ---

    def model(self, name: str) -> Model:
        """A query whose key is unique and never NULL."""
        rng = self.rng
        is_linear = rng.random() < self.linear
        if is_linear:
            rel = linear(self._scope(0))
        elif rng.random() < RESULTS:
            rel = of_results(self._scope(0))
        else:
            rel = self.query(rng.choice((0, 1, 1, 2)))
        keys = [key for key in rel.keys if all(rel.col(one).type != "double" for one in key)]
        if not keys:
            rel = self._made_distinct(rel)
            keys = list(rel.keys)
        key = min(keys, key=lambda one: (len(one), sorted(one))) if rng.random() < 0.8 else rng.choice(keys)
        rel = self._without_nulls(rel, key) if any(_needs_text(rel.col(one)) for one in key) else rel
        order, reasons, leads = tuple(sorted(key)), _reasons(rel, key), dict(rel.leads)
        affected_by: tuple[tuple[str, tuple[str, ...]], ...] = ()
        if leads and not is_linear and not reasons and key <= set(leads) and rng.random() < 0.4:
            affected_by = ((next(iter(rel.traits.inputs)), tuple(leads[one] for one in order)),)
            rel = replace(rel, traits=rel.traits.add("affected_by"))
        return Model(name, rel.text, order, rel, reasons, affected_by)

    def _made_distinct(self, rel: Rel) -> Rel:
        alias = self.names.alias()
        kept = [one for one in rel.cols if one.type != "double"]
        items = ", ".join(f"{alias}.{one.name}" for one in kept) or "1 as one"
        cols = tuple(one.grouped() for one in kept) or (
            Col("one", "int", False, self.names.ident(), frozenset()),
        )
        traits = rel.traits.add("distinct")
        if any(one.derived for one in kept):
            traits = traits.add(reason="distinct over a derived column")
        text = f"(select distinct {items} from {rel.item} {alias})"
        return Rel(text, cols, (frozenset(one.name for one in cols),), traits)

    def _without_nulls(self, rel: Rel, key: frozenset[str]) -> Rel:
        alias = self.names.alias()
        items, cols = [], []
        for one in rel.cols:
            item, col = f"{alias}.{one.name}", one
            if one.name in key and _needs_text(one):
                text, kind = _not_null(item, one.type)
                item, col = f"{text} as {one.name}", replace(one, null=False, type=kind)
            items.append(item)
            cols.append(col)
        text = f"(select {', '.join(items)} from {rel.item} {alias})"
        return replace(rel, item=text, cols=tuple(cols), traits=rel.traits.add("coalesced key"), leads=())


def _needs_text(col: Col) -> bool:
    return col.null


def _not_null(item: str, kind: str) -> tuple[str, str]:
    if kind in _NONE:
        return f"coalesce({item}, {_NONE[kind]})", kind
    return f"coalesce(cast({item} as string), '~')", "string"


def _reasons(rel: Rel, key: frozenset[str]) -> frozenset[str]:
    """Why the query is not local, its windows judged by the key."""
    cols = [rel.col(one) for one in key]
    reasons = set(rel.traits.reasons)
    if any(one.derived for one in cols):
        reasons.add("key from a derived column")
    if any(not all(one.is_determined(window) for one in cols) for window in rel.traits.windows):
        reasons.add("window whose partition does not determine the key")
    return frozenset(reasons)


def _base(names: Names, table: TableDef) -> Rel:
    cols = []
    for one in table.columns:
        ident = names.ident()
        cols.append(Col(one.name, one.type, one.null, ident, frozenset({ident}), hint=one.refers))
    keys = (frozenset(table.key),) if table.key else ()
    return Rel(f"<<{table.name}>>", tuple(cols), keys, Traits(inputs=frozenset({table.name})))


def _same_types(rng: random.Random, left: Sequence[Col], right: Sequence[Col]) -> list[tuple[Col, Col]]:
    """Columns of two queries side by side, as far as types go; no doubles, which are no keys."""
    pairs, used = list[tuple[Col, Col]](), set[str]()
    for one in left:
        ints = ("int", "bigint") if one.type in ("int", "bigint") else (one.type,)
        fits = [two for two in right if two.type in ints and two.name not in used and one.type != "double"]
        fits = [two for two in fits if two.name == one.name] or fits
        if fits and len(pairs) < 4:
            two = rng.choice(fits)
            used.add(two.name)
            pairs.append((one, two))
    return pairs


def _union_keys(
    left: Rel, right: Rel, pairs: Sequence[tuple[Col, Col]], names: Sequence[str]
) -> tuple[frozenset[str], ...]:
    """With the side: columns that hold a key of each."""
    one = [key for key in left.keys if key <= {pair[0].name for pair in pairs}]
    two = [key for key in right.keys if key <= {pair[1].name for pair in pairs}]
    found = []
    for first in one:
        for second in two:
            both = zip(names, pairs, strict=True)
            found.append(
                frozenset({"side"} | {n for n, (a, b) in both if a.name in first or b.name in second})
            )
    return tuple(found)


def _ref(refs: Sequence[Ref], col: Col) -> Ref:
    return next(one for one in refs if one.sql.partition(".")[2] == col.name)


def _distinct_names(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for one in names:
        found.append(one if one not in found else f"{one}_{len(found)}")
    return found
