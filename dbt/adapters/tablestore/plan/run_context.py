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
from typing import Any

from jinja2 import Undefined

from dbt.adapters.tablestore.model_graph import Nodes
from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.api import FixRequest


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
    return PlanContext(**_read("plan", given, "existing", "full_refresh", "batch", "event_time", "compiled"))


def read_code(given: Mapping[str, object]) -> PlanContext:
    """Of adapter.tablestore_run_python()."""
    return PlanContext(**_read("run_python", given, "existing", "full_refresh", "compiled"))


def read_write(given: Mapping[str, object]) -> RunContext:
    """Of adapter.tablestore_write()."""
    return RunContext(**_read("write", given, "existing", "nodes", "selected", "invocation", "batch"))


def read_snapshot(given: Mapping[str, object]) -> tuple[RunContext, SnapshotQuery]:
    """Of adapter.tablestore_snapshot()."""
    source = ("source", "text", "key", "view", "restricted")
    values = _read("snapshot", given, "existing", "nodes", "selected", "invocation", *source)
    query = SnapshotQuery(*(values.pop(name) for name in source))
    return RunContext(**values), query


def read_in_place(given: Mapping[str, object]) -> RunContext:
    """Of adapter.tablestore_check_in_place()."""
    return RunContext(**_read("check_in_place", given, "nodes", "selected", "invocation"))


def read_seed(given: Mapping[str, object]) -> SeedContext:
    """Of adapter.tablestore_seed()."""
    own = ("column_types", "quote_columns")
    values = _read("seed", given, *own, "existing", "nodes", "selected", "invocation")
    types, quotes = (values.pop(name) for name in own)
    return SeedContext(RunContext(**values), types or {}, quotes)


def read_changes(given: Mapping[str, object]) -> InputContext:
    """Of adapter.tablestore_changes()."""
    return InputContext(**_read("changes", given, "target", "model", "full_refresh"))


def read_stream(given: Mapping[str, object]) -> InputContext:
    """Of adapter.tablestore_stream()."""
    return InputContext(**_read("stream", given, "target", "model", "nodes", "explained"))


def _read(call: str, given: Mapping[str, object], *names: str) -> dict[str, Any]:
    """The arguments of one call of a macro, by name. Raises FixRequest TS1889."""
    missing = [name for name in names if name not in given]
    extra = [name for name in given if name not in names]
    if missing or extra:
        raise _wrong_names(call, names, missing, extra)
    found = {}
    for name in names:
        expected, read = _KINDS[name]
        try:
            found[name] = read(given[name])
        except _WrongTypeError:
            raise _wrong_type(call, name, given[name], expected) from None
    return found


class _WrongTypeError(Exception):
    """The value is none of the expected type."""


def _typed(kind: type | Callable[[Any], bool], *, if_none: object = _WrongTypeError) -> Callable[[Any], Any]:
    """A reader of values of this type; None is `if_none`, where that is given."""

    def read(value: Any) -> Any:  # noqa: ANN401 - of dbt's macros
        if value is None and if_none is not _WrongTypeError:
            return if_none
        if not (isinstance(value, kind) if isinstance(kind, type) else kind(value)):
            raise _WrongTypeError
        return value

    return read


def _read_texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple | set | frozenset) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise _WrongTypeError


def _read_batch(value: Any) -> BatchInterval | None:  # noqa: ANN401 - dbt's BatchContext, or the same as a mapping
    """None outside microbatch runs."""
    if value is None or value == {}:
        return None
    parts = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
    start, end = parts.get("event_time_start"), parts.get("event_time_end")
    if not isinstance(start, datetime) or not isinstance(end, datetime):
        raise _WrongTypeError
    return BatchInterval(start, end)


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, Undefined)  # which is callable, too


_TEXT = ("a text", _typed(str))
_TEXT_OR_NONE = ("a text or none", _typed(str, if_none=None))
_TEXTS = ("a list of texts", _read_texts)
_FLAG = ("true or false", _typed(bool, if_none=False))  # dbt gives none for a flag that nobody set
_MAPPING = ("a mapping", _typed(Mapping))
_RELATION = ("a relation or none", _typed(TablestoreRelation, if_none=None))
# argument -> what is expected, and its reader: a name means the same in each call
_KINDS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("existing", "target"), _RELATION),
    **dict.fromkeys(("full_refresh", "quote_columns"), _FLAG),
    **dict.fromkeys(("event_time", "compiled"), _TEXT_OR_NONE),
    **dict.fromkeys(("invocation", "source", "text", "view", "restricted"), _TEXT),
    **dict.fromkeys(("selected", "key"), _TEXTS),
    **dict.fromkeys(("nodes", "model"), _MAPPING),
    "column_types": ("a mapping", _typed(Mapping, if_none=None)),
    "explained": ("a function or none", _typed(_is_function, if_none=None)),
    "batch": ("dbt's batch with two times, or none", _read_batch),
}


def _wrong_names(
    call: str, names: Collection[str], missing: Collection[str], extra: Collection[str]
) -> FixRequest:
    found = [f"{kind} {', '.join(some)}" for kind, some in (("missing", missing), ("extra", extra)) if some]
    return FixRequest(
        "TS1889",
        f"the arguments of adapter.tablestore_{call}() are not those of this version",
        why=f"expected the names {', '.join(names)}; {'; '.join(found)}",
        fix=f"remove the macro of the project that calls adapter.tablestore_{call}(), or install dbt-tablestore again",
    )


def _wrong_type(call: str, name: str, value: object, expected: str) -> FixRequest:
    return FixRequest(
        "TS1889",
        f"argument {name!r} of adapter.tablestore_{call}() has the wrong type",
        why=f"expected {expected}, got {reprlib.repr(value)} ({type(value).__name__})",
        fix=f"correct {name!r} in the config of the model, or in the macro that passes it",
    )
