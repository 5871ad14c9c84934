"""A table in the making: the features that it got, and what each of them left for the next one to see.

Steps      1 one feature of each axis, drawn by weight; one that does not fit what is there is drawn again
           2 the schema   3 the history (histories.py)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from integration_tests.interop.matrix import rules
from integration_tests.interop.schemas import Schema, Type, schema


class DoesNotFit(Exception):
    """The feature cannot go with those that the table has."""


@dataclass
class Draft:
    """`values`: columns with values of their own; `filled`: columns without NULL; `deletes`: 'free', 'final' (a deleted
    key never comes back, since what Paimon then shows depends on its compactions) or 'none';
    `retracted`: the columns that are not NULL in a delete, None for all;
    `moves`: whether a key may be in another partition later; `kind_column`: has the kind of each row;
    `defaults`: what a write stores for NULL (schemas.Column).
    """

    chance: random.Random
    columns: dict[str, Type] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    values: dict[str, Sequence[Any]] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)
    rule: rules.Rule = rules.latest
    deletes: str = "free"
    retracted: frozenset[str] | None = None
    defaults: dict[str, tuple[str, Any]] = field(default_factory=dict)
    moves: bool = False
    kind_column: str = ""
    history: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)

    @property
    def schema(self) -> Schema:
        """Of the first version."""
        options, columns = dict(self.options), {"id": "BIGINT", **self.columns}
        made = schema(columns, keys=self.keys, partitions=self.partitions, options=options)
        listed = tuple(replace(one, default=self.defaults.get(one.name)) for one in made.columns)
        return replace(made, columns=listed)

    @property
    def is_keyed(self) -> bool:
        """Whether it has a primary key."""
        return bool(self.keys)

    def need(self, *, fits: bool) -> None:
        """Raises DoesNotFit."""
        if not fits:
            raise DoesNotFit


@dataclass(frozen=True)
class Feature:
    """`add` changes the draft; `weight`: how often it is drawn beside the others of its axis."""

    name: str
    add: Callable[[Draft], None]
    weight: float = 1.0


def draw(axes: Sequence[Sequence[Feature]], seed: int) -> Draft:
    """One feature of each axis that has one which fits. Each axis has randomness of its own, so that a table without a
    new feature stays what it was.
    """
    draft = Draft(random.Random(seed))
    for axis in axes:
        draft.chance = random.Random(f"{seed}/{axis[0].name}")
        left = list(axis)
        while left:
            [one] = draft.chance.choices(left, [feature.weight for feature in left])
            try:
                one.add(draft)
            except DoesNotFit:
                left.remove(one)
            else:
                if one.name:
                    draft.features.append(one.name)
                break
    draft.chance = random.Random(f"{seed}/history")
    return draft
