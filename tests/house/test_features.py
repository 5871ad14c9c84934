"""The page of features says what the code does: each refusal once, each supported feature with its test."""

from __future__ import annotations

from collections import Counter

import pytest

from docs.feature_rows import FEATURES, Feature, State
from tablestore_engine.format.capability import CAPABILITIES, Capability
from tablestore_engine.options.not_built import NOT_BUILT

ROWS = [feature for rows in FEATURES.values() for feature in rows]
BY_NAME = {one.feature: one for one in CAPABILITIES}


def _capabilities(feature: Feature) -> list[Capability]:
    return [BY_NAME[name] for name in feature.refusals if name in BY_NAME]


def test_each_refusal_stands_in_one_row() -> None:
    """A refusal that comes or goes changes the page."""
    named = Counter(name for feature in ROWS for name in feature.refusals)
    assert set(named) == set(BY_NAME) | {one.keys for one in NOT_BUILT}
    assert {name for name, count in named.items() if count > 1} == set()


@pytest.mark.parametrize("feature", ROWS, ids=lambda one: one.name)
def test_row_says_what_the_code_does(feature: Feature) -> None:
    """What is readable is not written, and what is supported has a test, which test_citations.py looks for."""
    found = _capabilities(feature)
    if feature.state is State.SUPPORTED:
        assert not feature.refusals
        assert feature.tests
    if feature.state is State.READABLE:
        assert all(one.read and not one.write for one in found)
    if feature.state is State.REFUSED:
        assert feature.note
        assert not any(one.read for one in found)


def test_few_features_are_refused() -> None:
    """The number may only fall."""
    assert sum(feature.state is State.REFUSED for feature in ROWS) <= 12
