"""Values that the macros pass by name, checked once where they enter the adapter.

CHANGE     the arguments from a macro to the adapter
INVARIANT  a context is frozen and typed: no module below impl.py looks up an argument of a macro by its name.
INVARIANT  a missing name, an extra name and a wrong type are errors: none of them becomes a default.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from jinja2 import Undefined

from dbt.adapters.tablestore.model_graph import Nodes
from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.api import FixRequest

T = TypeVar("T")


@dataclass(frozen=True)
class BatchInterval:
    """One batch of a microbatch run: instants, [start, end). dbt's model.batch."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class PlanContext:
    """What a plan needs beside the query. `compiled`: the model's text with its header, None for a seed."""

    existing: TablestoreRelation | None = None
    full_refresh: bool = False
    batch: BatchInterval | None = None
    event_time: str | None = None
    compiled: str | None = None


@dataclass(frozen=True)
class RunContext:
    """What a write needs beside its rows. `selected`: unique ids of the nodes that this invocation runs."""

    invocation: str
    nodes: Nodes = field(default_factory=dict)
    selected: tuple[str, ...] = ()
    existing: TablestoreRelation | None = None
    batch: BatchInterval | None = None


@dataclass(frozen=True)
class SeedContext:
    """A seed's write: `column_types` are config of the seed, column → Spark type."""

    run: RunContext
    column_types: Mapping[str, Any]
    quote_columns: bool


@dataclass(frozen=True)
class SnapshotQuery:
    """The source of a dbt snapshot; empty: it is not followed. `text`: what decides which of its rows changed.
    `restricted`: the rows to upsert for the keys in a temporary view of the name `view`; empty in the first run.
    """

    sql: str
    text: str
    key: tuple[str, ...]
    view: str
    restricted: str


@dataclass(frozen=True)
class InputContext:
    """An input in the SQL of `model`, whose table is `target`: None in nodes without a table, which have no inputs.

    `explained`: dbt's render() in `dbt compile`.
    """

    target: TablestoreRelation | None
    model: Mapping[str, Any]
    full_refresh: bool = False
    nodes: Nodes = field(default_factory=dict)
    explained: Callable[[str], str] | None = None


def read_plan(given: Mapping[str, object]) -> PlanContext:
    """Of adapter.tablestore_plan(). Raises FixRequest TS1889, as all of them."""
    values = _MacroValues("plan", given, ("existing", "full_refresh", "batch", "event_time", "compiled"))
    return PlanContext(
        existing=values.relation_or_none("existing"),
        full_refresh=values.flag("full_refresh"),
        batch=values.batch("batch"),
        event_time=values.text_or_none("event_time"),
        compiled=values.text_or_none("compiled"),
    )


def read_write(given: Mapping[str, object]) -> RunContext:
    """Of adapter.tablestore_write()."""
    names = ("existing", "nodes", "selected", "invocation", "batch")
    return _run_context(_MacroValues("write", given, names))


def read_snapshot(given: Mapping[str, object]) -> tuple[RunContext, SnapshotQuery]:
    """Of adapter.tablestore_snapshot()."""
    source = ("source", "text", "key", "view", "restricted")
    values = _MacroValues("snapshot", given, ("existing", "nodes", "selected", "invocation", *source))
    sql, text, view, restricted = (values.text(name) for name in ("source", "text", "view", "restricted"))
    return _run_context(values), SnapshotQuery(sql, text, values.texts("key"), view, restricted)


def read_in_place(given: Mapping[str, object]) -> RunContext:
    """Of adapter.tablestore_check_in_place()."""
    return _run_context(_MacroValues("check_in_place", given, ("nodes", "selected", "invocation")))


def read_seed(given: Mapping[str, object]) -> SeedContext:
    """Of adapter.tablestore_seed()."""
    names = ("column_types", "quote_columns", "existing", "nodes", "selected", "invocation")
    values = _MacroValues("seed", given, names)
    types = values.mapping_or_none("column_types")
    return SeedContext(_run_context(values), types or {}, values.flag("quote_columns"))


def read_changes(given: Mapping[str, object]) -> InputContext:
    """Of adapter.tablestore_changes()."""
    values = _MacroValues("changes", given, ("target", "model", "full_refresh"))
    return InputContext(
        target=values.relation_or_none("target"),
        model=values.mapping("model"),
        full_refresh=values.flag("full_refresh"),
    )


def read_stream(given: Mapping[str, object]) -> InputContext:
    """Of adapter.tablestore_stream()."""
    values = _MacroValues("stream", given, ("target", "model", "nodes", "explained"))
    return InputContext(
        target=values.relation_or_none("target"),
        model=values.mapping("model"),
        nodes=values.mapping("nodes"),
        explained=values.function_or_none("explained"),
    )


def _run_context(values: _MacroValues) -> RunContext:
    return RunContext(
        invocation=values.text("invocation"),
        nodes=values.mapping("nodes"),
        selected=values.texts("selected"),
        existing=values.relation_or_none("existing") if "existing" in values.names else None,
        batch=values.batch("batch") if "batch" in values.names else None,
    )


class _MacroValues:
    """The arguments of one call of a macro. Raises FixRequest TS1889."""

    def __init__(self, call: str, given: Mapping[str, object], names: Collection[str]) -> None:
        self._call, self._given, self.names = f"adapter.tablestore_{call}", given, names
        missing = [name for name in names if name not in given]
        extra = [name for name in given if name not in names]
        if missing or extra:
            raise self._wrong_names(missing, extra)

    def text(self, name: str) -> str:
        return self._typed(name, str, "a text")

    def text_or_none(self, name: str) -> str | None:
        return self._typed_or_none(name, str, "a text or none")

    def flag(self, name: str) -> bool:
        """dbt gives none for a flag that nobody set."""
        return bool(self._typed_or_none(name, bool, "true or false"))

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._given[name]
        if isinstance(value, list | tuple | set | frozenset) and all(isinstance(one, str) for one in value):
            return tuple(value)
        raise self._wrong_type(name, "a list of texts")

    def mapping(self, name: str) -> Mapping[str, Any]:
        value = self._given[name]
        if not isinstance(value, Mapping):
            raise self._wrong_type(name, "a mapping")
        return value

    def mapping_or_none(self, name: str) -> Mapping[str, Any] | None:
        return None if self._given[name] is None else self.mapping(name)

    def relation_or_none(self, name: str) -> TablestoreRelation | None:
        return self._typed_or_none(name, TablestoreRelation, "a relation or none")

    def function_or_none(self, name: str) -> Callable[[str], str] | None:
        value = self._given[name]  # an undefined value of Jinja is callable
        if value is not None and (isinstance(value, Undefined) or not callable(value)):
            raise self._wrong_type(name, "a function or none")
        return value

    def batch(self, name: str) -> BatchInterval | None:
        """dbt gives its BatchContext or the same as a mapping; nothing outside microbatch runs."""
        value: Any = self._given[name]
        if value is None or value == {}:
            return None
        parts = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
        start, end = parts.get("event_time_start"), parts.get("event_time_end")
        if not isinstance(start, datetime) or not isinstance(end, datetime):
            raise self._wrong_type(name, "dbt's batch with two times, or none")
        return BatchInterval(start, end)

    def _typed(self, name: str, kind: type[T], expected: str) -> T:
        value = self._given[name]
        if not isinstance(value, kind):
            raise self._wrong_type(name, expected)
        return value

    def _typed_or_none(self, name: str, kind: type[T], expected: str) -> T | None:
        return None if self._given[name] is None else self._typed(name, kind, expected)

    def _wrong_names(self, missing: Collection[str], extra: Collection[str]) -> FixRequest:
        found = [
            f"{kind} {', '.join(some)}" for kind, some in (("missing", missing), ("extra", extra)) if some
        ]
        return FixRequest(
            "TS1889",
            f"the arguments of {self._call}() are not those of this version",
            why=f"expected the names {', '.join(self.names)}; {'; '.join(found)}",
            fix=f"remove the macro of the project that calls {self._call}(), or install dbt-tablestore again",
        )

    def _wrong_type(self, name: str, expected: str) -> FixRequest:
        value = self._given[name]
        return FixRequest(
            "TS1889",
            f"argument {name!r} of {self._call}() has the wrong type",
            why=f"expected {expected}, got {reprlib.repr(value)} ({type(value).__name__})",
            fix=f"correct {name!r} in the config of the model, or in the macro that passes it",
        )
