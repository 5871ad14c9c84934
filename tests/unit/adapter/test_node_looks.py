"""When a node looks tables up again: never between its first question and its commit, unless something may differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from dbt.adapters.tablestore.node_looks import NodeLooks
from tablestore_engine.api import Engine, TableVersion

STAGED = {"demo.orders": TableVersion(branch="b")}


@pytest.fixture
def looks(tmp_path: Path) -> NodeLooks:
    """Of an invocation on an empty warehouse."""
    engine = Engine(tmp_path / "warehouse")
    return NodeLooks(lambda: engine)


def test_a_node_keeps_its_engine_and_another_thread_has_its_own(looks: NodeLooks) -> None:
    """Threads build nodes of their own; between nodes each call looks."""
    plain = looks.engine()
    looks.begin()
    looks.keep({})
    own = looks.engine()
    looks.keep({})
    looks.resume()
    assert looks.engine() is own is not plain
    others: list[Engine] = []
    thread = Thread(target=lambda: others.append(looks.engine()))
    thread.start()
    thread.join()
    assert others == [plain]


@pytest.mark.parametrize(
    "changes",
    [NodeLooks.forget, NodeLooks.begin, lambda looks: looks.keep(STAGED)],
    ids=["statement", "next node", "publication of another thread"],
)
def test_what_was_seen_is_forgotten_when_it_may_differ(
    looks: NodeLooks, changes: Callable[[NodeLooks], None]
) -> None:
    """A plain name means other rows once the staged snapshot, which was read instead, is published."""
    looks.begin()
    looks.keep({})
    before = looks.engine()
    changes(looks)
    assert looks.engine() is not before


def test_behind_a_write_each_call_looks(looks: NodeLooks) -> None:
    """Also when a statement runs then."""
    plain = looks.engine()
    looks.begin()
    looks.end()
    looks.forget()
    looks.keep(STAGED)
    assert looks.engine() is plain
