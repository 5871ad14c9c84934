"""What a reader remembers of keys: the same, in memory or on disk, as a dict would."""

from __future__ import annotations

import errno
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tablestore_engine.errors import RetryError
from tablestore_engine.stream import key_state
from tablestore_engine.stream.key_state import Entry, KeyState


def put(state: KeyState, entries: Sequence[tuple[bytes, Entry]]) -> None:
    """As the columns that a state takes."""
    partitions, offsets = (np.array([one[at] for _, one in entries], np.int64) for at in (1, 2))
    state.put([key for key, _ in entries], [one[0] for _, one in entries], partitions, offsets)


@pytest.fixture(params=["hashes", "few hashes"])
def hashes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where most keys share their hash with another one."""
    if request.param == "few hashes":
        monkeypatch.setattr(
            key_state, "_hashes", lambda keys: np.array([sum(key) % 2 for key in keys], np.uint64)
        )


@pytest.mark.usefixtures("hashes")
@pytest.mark.parametrize("seed", range(20))
def test_like_a_dict(seed: int, tmp_path: Path) -> None:
    """Puts, finds and boundaries at random; a few keys in memory, so that most lie on disk."""
    rng = random.Random(seed)
    state, model = KeyState(tmp_path, keys_max=rng.choice([1, 5, 1_000])), dict[bytes, Entry]()
    ends, gone = {0: 0, 1: 0}, {0: 0, 1: 0}
    for _ in range(60):
        part = []
        for _ in range(rng.randint(0, 6)):
            at = rng.randrange(2)
            key = f"{at}-{rng.randrange(12)}".encode()  # a key has one partition
            part.append((key, (rng.choice([None, b"v", b"w" * 300]), at, ends[at])))
            ends[at] += 1
        put(state, part)
        model.update(part)
        if rng.random() < 0.2:
            gone = {at: rng.randint(gone[at], end) for at, end in ends.items()}
            state.forget(gone)
        asked = list({f"{at}-{number}".encode() for at in range(2) for number in rng.sample(range(14), 5)})
        found = state.find(asked)
        for key in asked:
            known = model.get(key)
            if known is None:
                assert key not in found
            elif known[2] >= gone[known[1]]:
                assert found[key] == known
            else:  # it may be forgotten, but never be another one
                assert found.get(key, known) == known


def test_nothing_of_it_lies_in_the_folder(tmp_path: Path) -> None:
    """Not even after a kill: the files have no name from the moment they are open."""
    state = KeyState(tmp_path, keys_max=1)
    put(state, [(b"a", (b"1", 0, 0)), (b"b", (b"2", 0, 1))])
    assert state._far is not None
    assert list(tmp_path.iterdir()) == []
    assert state.find([b"a"]) == {b"a": (b"1", 0, 0)}


def test_messages_of_few_keys_stay_in_memory(tmp_path: Path) -> None:
    """1,000 messages of two keys are no more than two rows: nothing is spilled, and older messages are not held."""
    state = KeyState(tmp_path, keys_max=10)
    for number in range(1_000):
        put(state, [(b"%d" % (number % 2), (b"v", 0, number))])
        assert sum(len(one.values) for one in state._held) <= 10
    assert state._far is None
    assert state.find([b"0", b"1"]) == {b"0": (b"v", 0, 998), b"1": (b"v", 0, 999)}


def test_runs_on_disk_stay_few(tmp_path: Path) -> None:
    """100 spills of a few keys leave runs of which each is twice as large as the next, and all keys are found."""
    state = KeyState(tmp_path, keys_max=3)
    for number in range(100):
        put(state, [(b"%d" % key, (b"v", 0, key)) for key in range(4 * number, 4 * number + 4)])
    assert state._far is not None
    sizes = [len(run) for run in state._far._runs]
    assert sum(sizes) == 400
    assert all(older >= 2 * newer for older, newer in pairwise(sizes))
    assert len(state.find([b"%d" % key for key in range(500)])) == 400


def test_a_disk_in_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TS1359 names the folder: one that is not there, one that is full."""
    with pytest.raises(RetryError, match="TS1359"):
        put(KeyState(tmp_path / "none", keys_max=0), [(b"a", (b"1", 0, 0))])
    state = KeyState(tmp_path, keys_max=1)
    put(state, [(b"a", (b"1", 0, 0)), (b"b", (b"2", 0, 1))])

    class Full:
        """A file on a disk without room."""

        def write(self, _: bytes) -> int:
            """Fail."""
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(state._far, "_records", Full())
    with pytest.raises(RetryError, match=r"TS1359.*\n?.*No space") as refused:
        put(state, [(b"c", (b"1", 0, 0)), (b"d", (b"2", 0, 1))])
    assert str(tmp_path) in str(refused.value)
    assert key_state.KEYS_MAX > 1
