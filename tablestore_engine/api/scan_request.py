"""What a scan gives of the rows of a table: columns, a filter and a limit, checked when the scan is made."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.runtime.moments import epoch_millis
from tablestore_engine.sql.table_version import TableVersion, find_version

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from tablestore_engine.store.rows.row_condition import RowCondition


def state_of(
    *,
    snapshot: object = None,
    tag: str | None = None,
    timestamp_ms: object = None,
    branch: str | None = None,
    watermark: object = None,
) -> TableVersion | None:
    """Which state is meant, None: the current one. Texts of digits are numbers, a datetime with a zone is a time.

    Raises FixRequest TS1015, TS1569.
    """
    number = int(snapshot) if isinstance(snapshot, str) and snapshot.isdecimal() else snapshot
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise refuse_scan(
            "snapshot", snapshot, "the id of a snapshot, a whole number; a tag is given as tag='…'"
        )
    return find_version(
        snapshot=number,
        tag=tag,
        timestamp_ms=_millis("timestamp_ms", timestamp_ms),
        branch=branch,
        watermark=_millis("watermark", watermark),
    )


def _millis(name: str, given: object) -> int | None:
    """Raises FixRequest TS1569."""
    expected = "epoch milliseconds, or a datetime with a time zone"
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise refuse_scan(name, given, expected)
        return epoch_millis(given)
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    raise refuse_scan(name, given, expected)


_MOST_ROWS = 2**63 - 1  # Arrow counts rows in 64 bits
Filter: TypeAlias = "str | pc.Expression"  # SQL text, or an expression such as pc.field("id") == 5


@dataclass(frozen=True)
class ScanRequest:
    """`condition`: the filter as the store takes it; `shown`: as it was written."""

    columns: tuple[str, ...] | None = None
    condition: RowCondition | None = None
    limit: int | None = None
    shown: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every row is asked for."""
        return self.condition is None and self.limit is None

    def __repr__(self) -> str:
        """The arguments of Table.scan that say the same."""
        said = {
            "columns": None if self.columns is None else list(self.columns),
            "filter": self.shown,
            "limit": self.limit,
        }
        return "".join(f", {name}={value!r:.200}" for name, value in said.items() if value is not None)


def condition_of(wanted: Filter) -> RowCondition:
    """The filter as a condition of rows. Raises FixRequest TS1569 for an object that is none."""
    import polars as pl
    import pyarrow.compute as pc

    from tablestore_engine.store.read.expression_condition import ExpressionCondition
    from tablestore_engine.store.read.text_condition import TextCondition

    if isinstance(wanted, str):
        return TextCondition(wanted)
    if isinstance(wanted, pc.Expression):
        return ExpressionCondition(wanted)
    expected = "a text such as 'amount > 5', or a pyarrow expression such as pc.field('amount') > 5"
    if isinstance(wanted, pl.Expr):
        expected += "; polars expressions filter the frame: table.scan(columns=…).to_polars().filter(…)"
    raise refuse_scan("filter", wanted, expected)


def parse_scan(
    schema: TableSchema, columns: Sequence[str] | None, wanted: Filter | None, limit: int | None
) -> ScanRequest:
    """A checked request. Raises FixRequest TS1564 to TS1566 for filters, TS1569; NotFound TS1110 for a column."""
    names = None if columns is None or isinstance(columns, str) else schema.spelled(columns)
    if isinstance(columns, str) or (names is not None and len(set(names)) < len(names)):
        raise refuse_scan("columns", columns, "a list of names, each once")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise refuse_scan("limit", limit, "a number of rows, 0 or more")
    condition = None if wanted is None else condition_of(wanted)
    if condition is not None:
        condition.bind(schema)
    limit = None if limit is None else min(limit, _MOST_ROWS)
    return ScanRequest(names, condition, limit, None if wanted is None else str(wanted))


def filtered(request: ScanRequest, schema: TableSchema, wanted: Filter) -> ScanRequest:
    """With one more filter. Raises FixRequest TS1569 behind a limit, which counts rows before it; as parse_scan."""
    from tablestore_engine.store.read.joint_condition import JointCondition

    if request.limit is not None:
        raise refuse_scan("filter", wanted, "a filter before the limit: table.scan(filter=…, limit=…)")
    added = parse_scan(schema, None, wanted, None)
    if request.condition is None or added.condition is None:
        return replace(request, condition=added.condition, shown=added.shown)
    both = JointCondition((request.condition, added.condition))
    return replace(request, condition=both, shown=f"({request.shown}) and ({added.shown})")


def selected(request: ScanRequest, schema: TableSchema, columns: Sequence[str]) -> ScanRequest:
    """With these columns, which the scan must have. Raises NotFound TS1110, FixRequest TS1569."""
    names = parse_scan(schema, columns, None, None).columns or ()
    missing = [
        name
        for name in names
        if name not in (schema.field_names if request.columns is None else request.columns)
    ]
    if missing:
        raise refuse_scan("columns", missing, f"some of {', '.join(request.columns or ())}")
    return replace(request, columns=names)


def refuse_scan(name: str, value: object, expected: str) -> FixRequest:
    """The error for an argument of a scan."""
    return FixRequest(
        "TS1569",
        f"a scan cannot have {name} {value!r:.80}",
        why=f"expected {expected}",
        fix=f"correct {name} (docs/python-api.md#scan)",
    )


def refuse_spark(request: ScanRequest) -> FixRequest:
    """The error for a frame of Spark over some of the rows."""
    shown = f"filter {request.shown!r:.80}" if request.shown is not None else f"limit {request.limit}"
    return refuse_scan(
        f"a Spark frame with {shown}", "", "filters and limits on the frame: frame.where(…).limit(…)"
    )
