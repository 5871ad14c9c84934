"""What a reader remembers of keys: the same, in memory or on disk, as a dict would."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from tablestore_engine.errors import RetryError
from tablestore_engine.stream import key_state
from tablestore_engine.stream.key_state import Entry, KeyState


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
        state.put(part)
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
    """Not even after a kill: the file has no name from the moment it is opened."""
    state = KeyState(tmp_path, keys_max=1)
    state.put([(b"a", (b"1", 0, 0)), (b"b", (b"2", 0, 1))])
    assert state._far is not None
    assert list(tmp_path.iterdir()) == []
    assert state.find([b"a"]) == {b"a": (b"1", 0, 0)}


def test_a_disk_in_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TS1359 names the folder: one that is not there, one that is full."""
    with pytest.raises(RetryError, match="TS1359"):
        KeyState(tmp_path / "none", keys_max=0).put([(b"a", (b"1", 0, 0))])
    state = KeyState(tmp_path, keys_max=1)
    state.put([(b"a", (b"1", 0, 0)), (b"b", (b"2", 0, 1))])

    class Full:
        """A connection to a disk without room."""

        def executemany(self, *_: object) -> None:
            """Fail."""
            raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(state, "_far", Full())
    with pytest.raises(RetryError, match=r"TS1359.*\n?.*full") as refused:
        state.put([(b"c", (b"1", 0, 0)), (b"d", (b"2", 0, 1))])
    assert str(tmp_path) in str(refused.value)
    assert key_state.KEYS_MAX > 1
