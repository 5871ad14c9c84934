"""The engine as a node uses it: each table is looked up once, from the node's first question to its commit.

CHANGE     when a node looks a table up again
INVARIANT  of the thread that builds the node. What was seen is forgotten when the node runs a statement or user code,
           when other staged snapshots are read than before (another thread has published one), when it writes, and at
           the node's end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tablestore_engine.api import Engine, TableVersion


@dataclass
class _Looks:
    """`pins`: which staged snapshots statements read; None: nobody has asked yet."""

    engine: Engine
    pins: Mapping[str, TableVersion] | None = None


class NodeLooks:
    """Of one invocation; `engine` looks a table up with each call."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine
        self._of_thread = threading.local()

    def engine(self) -> Engine:
        """Of the node of this thread; between nodes it looks with each call."""
        looks = self._find()
        return self._engine() if looks is None else looks.engine

    def is_view(self, name: str) -> bool:
        """Whether the name is a view's, and no table's."""
        engine = self.engine()
        return engine.find_seen_table(name) is None and engine.find_view(name) is not None

    def begin(self) -> None:
        """A node begins, or is planned again."""
        self._of_thread.looks = _Looks(self._engine().looking_once())

    def resume(self) -> None:
        """A node is planned, by the looks that it has."""
        if self._find() is None:
            self.begin()

    def keep(self, pins: Mapping[str, TableVersion]) -> None:
        """The node's statements read these staged snapshots from here on."""
        looks = self._find()
        if looks is not None and looks.pins != pins:
            self._of_thread.looks = _Looks(self._engine().looking_once(), pins)

    def forget(self) -> None:
        """The warehouse may have changed by what the node did."""
        if self._find() is not None:
            self.begin()

    def end(self) -> None:
        """The node has written, or has ended."""
        self._of_thread.looks = None

    def _find(self) -> _Looks | None:
        found: _Looks | None = getattr(self._of_thread, "looks", None)
        return found
