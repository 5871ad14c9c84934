"""Warehouses of the page, built once for all tests that only read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tablestore_engine.api import Engine
from tests.unit.ui.page_world import SetClock, build_hostile, build_warehouse


@dataclass(frozen=True)
class World:
    """A warehouse at the end of its history."""

    engine: Engine
    clock: SetClock


@pytest.fixture(scope="package")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The warehouse of the pictures; REQUIRES that nobody writes into it."""
    clock = SetClock()
    engine = build_warehouse(tmp_path_factory.mktemp("shop") / "warehouse", clock)
    yield World(engine, clock)
    engine.close()


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Hostile texts wherever the engine takes them."""
    clock = SetClock()
    engine = build_hostile(tmp_path_factory.mktemp("hostile") / "warehouse", clock)
    yield World(engine, clock)
    engine.close()
