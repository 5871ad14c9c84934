"""The promises of fileio/base.py's ConditionalStore as tests, for stores that replace by compare-and-set."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tablestore_engine.errors import NotFound
from tablestore_engine.fileio.base import ConditionalStore, FileIO


class ConditionalPromises:
    """Needs fixtures `fileio: FileIO` and `root: str`, a folder of its own."""

    @pytest.fixture
    def conditional(self, fileio: FileIO) -> ConditionalStore:
        """What the store replaces by compare-and-set."""
        assert fileio.folders is None
        assert fileio.conditional is not None
        return fileio.conditional

    def test_replace_if_replaces_what_was_seen(
        self, fileio: FileIO, conditional: ConditionalStore, root: str
    ) -> None:
        """Promise 12: the content that was read is replaced, once; the second use of the same marks is refused."""
        fileio.write(f"{root}/f", b"first")
        seen = conditional.read_seen(f"{root}/f")
        assert seen.data == b"first"
        assert conditional.replace_if(f"{root}/f", b"second", seen)
        assert not conditional.replace_if(f"{root}/f", b"third", seen)
        assert fileio.read(f"{root}/f") == b"second"

    def test_replace_if_of_a_missing_file_makes_none(
        self, fileio: FileIO, conditional: ConditionalStore, root: str
    ) -> None:
        """Promise 12: a file that was deleted after it was read stays deleted; reading a missing one is TS1201."""
        fileio.write(f"{root}/f", b"first")
        seen = conditional.read_seen(f"{root}/f")
        fileio.delete(f"{root}/f")
        assert not conditional.replace_if(f"{root}/f", b"second", seen)
        assert not fileio.exists(f"{root}/f")
        with pytest.raises(NotFound, match="TS1201"):
            conditional.read_seen(f"{root}/f")

    def test_exactly_one_of_many_replaces(
        self, fileio: FileIO, conditional: ConditionalStore, root: str
    ) -> None:
        """Promise 12: of many threads with the same marks one wins, and the file holds the winner's bytes."""
        fileio.write(f"{root}/f", b"first")
        seen, barrier = conditional.read_seen(f"{root}/f"), threading.Barrier(8)

        def put(number: int) -> bool:
            barrier.wait()
            return conditional.replace_if(f"{root}/f", b"by %d" % number, seen)

        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(put, range(8)))
        assert won.count(True) == 1
        assert fileio.read(f"{root}/f") == b"by %d" % won.index(True)
