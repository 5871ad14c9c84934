"""The object store in memory that other tests stand on keeps the port's promises."""

from __future__ import annotations

import itertools

import pytest

from tests.doubles.memory_store import MemoryFileIO
from tests.unit.fileio.conditional_promises import ConditionalPromises
from tests.unit.fileio.port_promises import PortPromises


@pytest.fixture
def fileio() -> MemoryFileIO:
    """An empty store."""
    return MemoryFileIO("mem://warehouse", itertools.count(1_700_000_000_000).__next__)


@pytest.fixture
def root(fileio: MemoryFileIO) -> str:
    """Its root."""
    return fileio.root


class TestMemoryPromises(PortPromises, ConditionalPromises):
    """All promises of a store without folders."""
