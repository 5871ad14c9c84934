"""When a record of a table with a key expires: by the value of one column and the clock of who compacts.

CHANGE     which records expire (options record-level.expire-time, record-level.time-field)
PAIMON     both times are whole seconds. INT: seconds since 1970. BIGINT: seconds, from 10^12 on milliseconds.
           TIMESTAMP: its milliseconds / 1000, cut toward 0; one without a zone is taken as UTC. NULL never expires.
INVARIANT  a value like the schema and the moment: which rows go does not depend on where they lie.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import TIMESTAMP_ROOTS, DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.store.read.expression_condition import Expression, ExpressionCondition
from tablestore_engine.store.retention import RecordRule
from tablestore_engine.store.table_traits import TableTraits

_AGE, _FIELD = "record-level.expire-time", "record-level.time-field"
_FIRST_MILLIS = 10**12  # of a BIGINT
_PER_MILLI = {"ms": 1, "us": 1000, "ns": 1_000_000}


def expired_records(schema: TableSchema, now_ms: int) -> ExpressionCondition | None:
    """Those that are expired at this moment; None: none can be. Raises FixRequest TS1154 for a rule of no use."""
    rule = TableTraits(schema).record_rule
    return (
        None
        if rule is None
        else ExpressionCondition(_before(_time_field(schema, rule), now_ms // 1000 - rule.age_s))
    )


def _time_field(schema: TableSchema, rule: RecordRule) -> DataField:
    field = next((one for one in schema.fields if one.name == rule.field), None)
    if field is None:
        raise _refused(f"{_FIELD} is {rule.field!r}", f"set '{_FIELD}' to a column of the table")
    if field.type.root not in ("INT", "BIGINT", *TIMESTAMP_ROOTS):
        raise _refused(
            f"column {field.name!r} is {type_to_text(field.type)}; a time is INT, BIGINT or TIMESTAMP",
            f"name another column in '{_FIELD}'",
        )
    return field


def _before(field: DataField, oldest_s: int) -> Expression:
    column, root = pc.field(field.name), field.type.root
    if root == "INT":
        return column.cast(pa.int64()) < oldest_s
    if root == "BIGINT":
        return ((column < _FIRST_MILLIS) & (column < oldest_s)) | (
            (column >= _FIRST_MILLIS) & (column < oldest_s * 1000)
        )
    target = type_to_arrow(field.type)
    # the first millisecond whose seconds, cut toward 0, are not before
    millis = oldest_s * 1000 if oldest_s > 0 else (oldest_s - 1) * 1000 + 1
    return column < pa.scalar(millis * _PER_MILLI[target.unit], pa.int64()).cast(target)


def check_record_rule(schema: TableSchema, options: Mapping[str, str]) -> None:
    """Whether what `options` say of records can have an effect on a table of this schema. Raises FixRequest TS1154."""
    if not options.keys().isdisjoint((_AGE, _FIELD)) and not schema.is_keyed:
        raise _refused("the table has no primary key", "give the table a key, or delete rows by a condition")
    rule = TableTraits(schema).record_rule
    if rule is not None:
        _time_field(schema, rule)
    elif _FIELD in options:
        raise _refused(f"{_AGE} is not set", f"set '{_AGE}', for example to '7 d'")


def _refused(why: str, fix: str) -> FixRequest:
    return FixRequest("TS1154", f"records cannot expire by {_AGE} and {_FIELD}", why=why, fix=fix)
