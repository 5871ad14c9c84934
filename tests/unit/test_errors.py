"""Errors as values."""

from __future__ import annotations

import pickle

import pytest

from tablestore_engine import errors

KINDS = [
    one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.TablestoreError)
]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_reaches_another_process_as_it_is(kind: type[errors.TablestoreError]) -> None:
    """By pickle, with its facts: a pool of processes is broken by an error that cannot be read back."""
    sent = kind("TS1999", "what", why="why", fix="fix", snapshot=3)
    found = pickle.loads(pickle.dumps(sent))
    assert type(found) is kind
    assert (str(found), found.facts) == (str(sent), {"snapshot": 3})
