"""What the generator knows of a query while it builds it: columns with their lineage, unique keys, locality.

Types are those of tables.py and `real_group`: a `real` whose sign of zero a GROUP BY chose, which is never printed.
Text is Spark's and DuckDB's at once; where they differ stands `[[spark||duckdb]]`. `<<name>>` is an input, a view or a
model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

NUMBERS = ("int", "bigint", "decimal", "double")
REALS = ("real", "real_group")
_NAME = re.compile(r"<<(\w+)>>")
_EITHER = re.compile(r"\[\[(.*?)\|\|(.*?)\]\]", re.DOTALL)


@dataclass(frozen=True)
class Col:
    """A column of a query. `ident`: the same number means the same value; `deps`: idents that determine it.

    `derived`: of an aggregate, a window or a subquery, so that no single input row gives it. `hint`: whose ids these
    are.
    """

    name: str
    type: str
    null: bool
    ident: int
    deps: frozenset[int]
    derived: bool = False
    hint: str | None = None

    def grouped(self) -> Col:
        """Behind a GROUP BY, DISTINCT, UNION or an order that takes equal values for one."""
        return replace(self, type="real_group") if self.type == "real" else self

    def is_determined(self, by: frozenset[int]) -> bool:
        """Whether columns with these idents determine this one."""
        return self.ident in by or (bool(self.deps) and self.deps <= by)


@dataclass(frozen=True)
class Traits:
    """`features`: kinds of clauses, for the report. `reasons`: why no human would call the query local."""

    features: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    windows: tuple[frozenset[int], ...] = ()
    inputs: frozenset[str] = frozenset()

    @property
    def constant(self) -> bool:
        """Reads no table."""
        return not self.inputs

    def join(self, other: Traits) -> Traits:
        """Of a query that has both."""
        return Traits(
            self.features | other.features,
            self.reasons | other.reasons,
            self.windows + other.windows,
            self.inputs | other.inputs,
        )

    def add(self, *features: str, reason: str | None = None) -> Traits:
        """One clause more."""
        reasons = self.reasons if reason is None else self.reasons | {reason}
        return replace(self, features=self.features | set(features), reasons=reasons)


@dataclass(frozen=True)
class Rel:
    """`item`: stands in FROM, a name or a query in parentheses. `keys`: sets of columns, each unique (NULL = NULL).

    `leads`: of a query over one input alone, the expressions over that input that give its columns.
    """

    item: str
    cols: tuple[Col, ...]
    keys: tuple[frozenset[str], ...]
    traits: Traits = field(default_factory=Traits)
    leads: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """As a statement."""
        return self.item[1:-1] if self.item.startswith("(") else f"select * from {self.item}"

    def col(self, name: str) -> Col:
        """By its name."""
        return next(one for one in self.cols if one.name == name)


@dataclass(frozen=True)
class Ref:
    """A column as an expression names it."""

    sql: str
    col: Col


@dataclass(frozen=True)
class From:
    """A FROM clause. `keys`: sets of the refs' texts."""

    text: str
    refs: tuple[Ref, ...]
    keys: tuple[frozenset[str], ...]
    traits: Traits
    where: tuple[str, ...] = ()

    def ref(self, sql: str) -> Ref:
        """By its text."""
        return next(one for one in self.refs if one.sql == sql)

    def clause(self) -> str:
        """FROM and WHERE."""
        return f"from {self.text}" + (f" where {' and '.join(self.where)}" if self.where else "")


def substitute(
    cols: tuple[Col, ...], traits: Traits, idents: Mapping[int, int]
) -> tuple[tuple[Col, ...], Traits]:
    """The same with other idents."""

    def swap(ones: frozenset[int]) -> frozenset[int]:
        return frozenset(idents.get(one, one) for one in ones)

    fresh = tuple(replace(one, ident=idents.get(one.ident, one.ident), deps=swap(one.deps)) for one in cols)
    return fresh, replace(traits, windows=tuple(map(swap, traits.windows)))


def render(text: str, names: Mapping[str, str], *, spark: bool) -> str:
    """One dialect's text; `names`: what stands for each input."""
    text = _EITHER.sub(lambda found: found.group(1 if spark else 2), text)
    return _NAME.sub(lambda found: names.get(found.group(1), found.group(1)), text)


def names_in(text: str) -> frozenset[str]:
    """Inputs, views and models that a text reads."""
    return frozenset(_NAME.findall(text))
