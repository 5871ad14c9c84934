"""Whether the topic of a table whose writers were killed tells its changes: once each, in order, to every reader.

Readers    a plain `read_committed` consumer; the table's stream over the log, which normalizes an eventual one
INVARIANT  two messages of one key and snapshot are a doubled one, even where the second changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from integration_tests.interop.oracle import Stored
from integration_tests.soak.killed_tables import KilledTable
from integration_tests.soak.plain_consumer import Key, Read, Told, consume
from integration_tests.soak.six_histories import Fold, Truth
from tablestore_engine.api import Table


def check_topic(handle: Table, url: str, table: KilledTable, truth: Truth) -> None:
    """Raises AssertionError with the seed."""
    where = f"seed {table.seed} ({table}), topic"
    handle.publish()
    told = list(consume(url, table.topic, Read(lambda _: table.schema.columns, table.keys)))
    if table.log == "transactional":
        _check_messages(told, truth, where)
    else:
        state: dict[Key, Stored] = {}
        for one in told:
            _take(state, one)
        truth.check(state, truth.newest, truth.schema.names, f"{where}, plain consumer")
    _check_stream(handle, truth, where, is_ordered=table.log == "transactional")


def _check_messages(told: Sequence[Told], truth: Truth, where: str) -> None:
    """Per snapshot: no key twice; the rows that the commands changed, and none that changed otherwise."""
    places = Counter((one.snapshot, one.key) for one in told)
    doubled = [place for place, count in places.items() if count > 1]
    assert not doubled, f"{where}: doubled {doubled[:5]}"
    state: dict[Key, Stored] = {}
    by_snapshot: dict[int, list[Told]] = {}
    for one in told:
        assert one.snapshot is not None, where
        by_snapshot.setdefault(one.snapshot, []).append(one)
    unknown = set(by_snapshot) - set(truth.states)
    assert not unknown, f"{where}: messages of snapshots {sorted(unknown)}, which are not there"
    for number in sorted(truth.states):
        for one in by_snapshot.get(number, ()):
            _take(state, one)
        truth.check(state, number, truth.schema.names, f"{where}, plain consumer")


def _take(state: dict[Key, Stored], one: Told) -> None:
    state.pop(one.key, None)
    if one.row is not None:
        state[one.key] = one.row


def _check_stream(handle: Table, truth: Truth, where: str, *, is_ordered: bool) -> None:
    words: dict[str, Any] = {"mode": "earliest", "read_mode": "log", "until": "now"}
    fold = Fold(truth, f"{where}, stream")
    with handle.stream(**words) as stream:
        for batch in stream:
            fold.take_batch(batch, is_ordered=is_ordered)
    if not is_ordered:
        fold.at = truth.newest
    fold.reach(truth.newest, truth.schema.names)
