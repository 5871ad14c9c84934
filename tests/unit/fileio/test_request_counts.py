"""The FileIO that counts requests keeps the promises of the port, and its numbers are exact."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tablestore_engine.fileio.base import FileIO, find
from tablestore_engine.fileio.local import LocalFileIO
from tests.doubles.request_counts import CountingFileIO
from tests.unit.fileio.port_promises import PortPromises


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A folder of its own."""
    return str(tmp_path / "root")


@pytest.fixture
def fileio(root: str) -> CountingFileIO:
    """The port on it."""
    return CountingFileIO(LocalFileIO(root))


class TestCountingPromises(PortPromises):
    """All promises of a store without folders."""


def test_calls_one_after_the_other_are_as_deep_as_they_are_many(fileio: CountingFileIO, root: str) -> None:
    """Three writes: three requests, three steps."""
    for number in range(3):
        fileio.write(f"{root}/{number}", b"1")
    assert (fileio.total, fileio.depth) == (3, 3)


def test_calls_that_run_together_are_as_deep_as_the_longest(fileio: CountingFileIO, root: str) -> None:
    """A missing name is two requests in sequence, beside one for each of two others; then one more."""
    calls = [partial(fileio.exists, f"{root}/none"), *[partial(fileio.list, root)] * 2]
    fileio.run_together(calls)
    assert (fileio.total, fileio.depth) == (4, 2)
    fileio.exists_file(f"{root}/none")
    assert (fileio.total, fileio.depth) == (5, 3)


def test_no_more_calls_run_at_once_than_the_store_allows(root: str) -> None:
    """Five reads, two at a time: three steps."""
    fileio = CountingFileIO(LocalFileIO(root), width=2)
    assert fileio.run_together([partial(find, fileio, f"{root}/none")] * 5) == [None] * 5
    assert (fileio.total, fileio.depth) == (5, 3)


def test_calls_inside_of_calls_that_run_together_overlap_too(fileio: FileIO, root: str) -> None:
    """Two groups of three lists, at once."""
    group = partial(fileio.run_together, [partial(fileio.list, root)] * 3)
    fileio.run_together([group, group])
    assert isinstance(fileio, CountingFileIO)
    assert (fileio.total, fileio.depth) == (6, 1)


def test_ranges_are_fetched_together_and_only_once(fileio: CountingFileIO, root: str) -> None:
    """The end with the size, two far ranges at once, neighbours as one; what is here already asks nothing."""
    size = 8 << 20
    fileio.write(f"{root}/f", bytes(size))
    fileio.restart()
    with fileio.open_input(f"{root}/f") as source:
        source.source.fetch([(0, 10), (1_000, 2_000), (4 << 20, (4 << 20) + 5), (size - 100, size)])
        assert (fileio.total, fileio.depth) == (3, 2)
        source.seek(1_500)
        assert source.read(100) == bytes(100)
        source.seek(size - 50)
        assert len(source.read()) == 50
        assert fileio.total == 3
        source.seek(3_000_000)
        source.read(1)
        assert fileio.total == 4


def test_a_listing_is_a_request_for_each_thousand_names(fileio: CountingFileIO, root: str) -> None:
    """1,001 names: two."""
    for number in range(1_001):
        fileio.inner.write(f"{root}/l/{number}", b"")
    assert len(fileio.list(f"{root}/l")) == 1_001
    assert fileio.by_method() == {"LIST": 2}
