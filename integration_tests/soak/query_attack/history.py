"""One project: tables with rows, views, models, and the changes between the runs; all of it follows from a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from integration_tests.soak.query_attack.changes import Changes, Later, Redefine, Skip, Step, SwitchView
from integration_tests.soak.query_attack.oracle import Oracle, Unfit
from integration_tests.soak.query_attack.queries import LINEAR, Model, Queries, View
from integration_tests.soak.query_attack.relation import Rel, Traits, names_in
from integration_tests.soak.query_attack.tables import Row, TableDef, random_rows, random_tables

EVERYTHING = "*"
LARGEST = 1500  # rows of a model
LONGEST = 6000  # characters of a query
_CHAINED = 0.08  # share of models that later ones read


@dataclass(frozen=True)
class History:
    """All that a run of the attack needs."""

    seed: str
    tables: tuple[TableDef, ...]
    rows: Mapping[str, tuple[Row, ...]]
    views: tuple[View, ...]
    models: tuple[Model, ...]
    rounds: tuple[tuple[Step, ...], ...]

    def only(self, *names: str) -> History:
        """The same with these models, and what they read."""
        needed, views = set(names), {one.name: one.texts[0] for one in self.views}
        texts = {**views, **{one.name: one.text for one in self.models}}
        while more := set().union(*(names_in(texts[one]) for one in needed if one in texts)) - needed:
            needed |= more
        needed.add(EVERYTHING)
        rounds = tuple(tuple(step for step in each if _name_of(step) in needed) for each in self.rounds)
        return replace(
            self,
            tables=tuple(one for one in self.tables if one.name in needed),
            rows={name: rows for name, rows in self.rows.items() if name in needed},
            views=tuple(one for one in self.views if one.name in needed),
            models=tuple(one for one in self.models if one.name in needed),
            rounds=rounds,
        )


def _name_of(step: Step) -> str:
    match step:
        case SwitchView():
            return step.view
        case Skip() | Redefine() | Later():
            return EVERYTHING
        case _:
            return step.table


def random_history(
    seed: str, models: int, rounds: int, clause: str | None = None, linear: float = LINEAR
) -> History:
    """`models` queries that DuckDB can run over the first rows; with a clause if one is asked for. `linear`: share of
    those whose changes add up.
    """
    rng = random.Random(seed)
    tables = random_tables(rng)
    counts = {one.name: rng.choice((0, *(6, 10, 14, 18, 22, 26) * 3)) for one in tables}
    rows = {one.name: tuple(random_rows(rng, one, counts[one.name])) for one in tables}
    views, found = _queries(Queries.over(rng, tables, linear), tables, rows, models, clause)
    changes = Changes(
        rng,
        {one.name: one for one in tables},
        views,
        [one.name for one in found],
        {
            one.name: {tuple(row[key] for key in one.key): dict(row) for row in rows[one.name]}
            for one in tables
        },
    )
    if linear == 1:  # for errors that show where several inputs change
        changes.commits = (3, 4, 5, 6)
    made = tuple(changes.round() for _ in range(rounds))
    return History(seed, tables, rows, tuple(views), tuple(found), made)


def _queries(
    queries: Queries,
    tables: tuple[TableDef, ...],
    rows: Mapping[str, tuple[Row, ...]],
    count: int,
    clause: str | None,
) -> tuple[list[View], list[Model]]:
    rng, views, models = queries.rng, list[View](), list[Model]()
    with Oracle() as oracle:
        for table in tables:
            oracle.put(table.name, table.arrow(list(rows[table.name])))
        for _ in range(rng.randint(0, 3)):
            view = queries.view(f"v{len(views) + 1}")
            if all(_size(oracle, text) is not None for text in view.texts):
                oracle.define(view.name, view.texts[0])
                views.append(view)
                queries.add(view.rel)
        while len(models) < count:
            model = queries.model(f"m{len(models) + 1}")
            if clause is not None and clause not in model.features:
                continue
            size = _size(oracle, model.text)
            if size is None or (not size and rng.random() < 0.8):
                continue
            models.append(model)
            if rng.random() < _CHAINED:
                oracle.define(model.name, model.text)
                queries.add(_as_base(model))
    return views, models


def _as_base(model: Model) -> Rel:
    """What a model is for those that read it: a table of its own."""
    traits = Traits(frozenset({"reads a model"}), inputs=frozenset({model.name}))
    cols = tuple(replace(one, deps=frozenset({one.ident}), derived=False) for one in model.rel.cols)
    return Rel(f"<<{model.name}>>", cols, (frozenset(model.key),), traits)


def _size(oracle: Oracle, text: str) -> int | None:
    """How many rows a query gives; None: too many, or no query."""
    if len(text) > LONGEST:
        return None
    try:
        found = len(oracle.rows(text, limit=LARGEST + 1).rows)
    except Unfit:
        return None
    return found if found <= LARGEST else None
