"""From values and options to a time: types, patterns, and options that could have no effect."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.options import parse_time_format
from tablestore_engine.sql.statement import SetProperties
from tablestore_engine.store.expiry.partition_time import (
    PartitionRule,
    check_rule,
    partition_time,
    shown_partition,
)
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.warehouse.statements.alter_statement import alter_schema
from tablestore_engine.warehouse.write.incoming_rows import from_arrow
from tablestore_engine.warehouse.write.target_schema import plan_target
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec

NEW_YEAR = 1_767_225_600 * 10**9


@pytest.mark.parametrize(
    ("type_", "value", "formatter"),
    [
        ("STRING", "2026-01-01", None),
        ("DATE", date(2026, 1, 1), None),  # not the day number of its folder
        ("DATE", date(2026, 1, 1), "yyyy-MM-dd"),
        ("INT", 20_260_101, "yyyyMMdd"),
        ("TIMESTAMP(3)", datetime(2026, 1, 1), "yyyy-MM-dd'T'HH:mm"),  # noqa: DTZ001 - a wall clock
    ],
)
def test_texts_of_types(type_: str, value: object, formatter: str | None) -> None:
    """As Java's formatter gets them: a date as it is written, a timestamp as Java shows it."""
    form = {} if formatter is None else {"time_format": parse_time_format(formatter)}
    spec = PartitionSpec(("dt",), (parse_type(type_),))
    assert partition_time(spec, (value,), PartitionRule(1, **form)) == NEW_YEAR
    assert partition_time(spec, (None,), PartitionRule(1, **form)) is None


def test_a_pattern_names_columns() -> None:
    """The longer of two names is meant; a column that is not named may be NULL; without a pattern the first counts."""
    spec = PartitionSpec(("d", "dt", "region"), (parse_type("STRING"),) * 3)
    assert partition_time(spec, ("x", "2026-01-01", None), PartitionRule(1, "$dt")) == NEW_YEAR
    assert partition_time(spec, ("2026-01-01", "x", "eu"), PartitionRule(1)) == NEW_YEAR
    assert partition_time(spec, ("2026", "01", "eu"), PartitionRule(1, "$d-$dt-01")) == NEW_YEAR
    assert partition_time(spec, ("2026", None, "eu"), PartitionRule(1, "$d-$dt-01")) is None
    assert shown_partition(spec, ("2026", None, "eu")) == "d=2026/dt=__DEFAULT_PARTITION__/region=eu"


FIELDS = from_arrow(pa.schema([("id", pa.int64()), ("dt", pa.string())]).empty_table()).fields


def _made(options: dict[str, str], partitions: tuple[str, ...], current: TableSchema | None) -> TableSchema:
    spec = TableSpec((), partition_by=partitions, options=options)
    return plan_target(current, FIELDS, spec, OnSchemaChange.IGNORE, table="d.t", new_uuid="u").schema


def _set(way: str, options: dict[str, str], partitions: tuple[str, ...], plain: TableSchema | None) -> object:
    if way == "alter":
        assert plain is not None
        return alter_schema(plain, SetProperties(tuple(options.items())), ())
    return _made(options, partitions, plain)


@pytest.mark.parametrize("way", ["create", "write", "alter"])
@pytest.mark.parametrize(
    ("partitions", "options", "why"),
    [
        ((), {"partition.expiration-time": "7 d"}, "no partitions"),
        (("dt",), {"partition.timestamp-pattern": "$day"}, "$day is none of them"),
        (("dt",), {"partition.timestamp-pattern": "2026-01-01"}, "names none of them"),
        ((), {"partition.timestamp-pattern": "$dt"}, "none; $dt"),
    ],
)
def test_rules_without_effect_are_refused(
    way: str, partitions: tuple[str, ...], options: dict[str, str], why: str
) -> None:
    """By every way that sets options; the table's columns are named."""
    plain = None if way == "create" else _made({}, partitions, None)
    with pytest.raises(FixRequest, match="TS1340") as refused:
        _set(way, options, partitions, plain)
    assert why in refused.value.why


def test_rules_of_others_are_looked_at_when_they_count() -> None:
    """A table may carry what another engine wrote: reading it asks nothing, expiring it does."""
    fields = pa.schema([("id", pa.int64()), ("dt", pa.string())])
    for options, code in (
        ({"partition.expiration-strategy": "update-time"}, "TS1137"),
        ({"partition.timestamp-formatter": "yyyy-MMM-dd"}, "TS1136"),
    ):
        schema = new_schema(
            fields, partition_keys=["dt"], options={"partition.expiration-time": "7 d", **options}
        )
        traits = TableTraits(schema)
        assert traits.has_log is False
        with pytest.raises(Unsupported, match=code):
            _ = traits.partition_rule
    check_rule(new_schema(fields, partition_keys=["dt"]), {"partition.timestamp-pattern": "$dt"})
    assert (
        TableTraits(new_schema(fields, options={"partition.expiration-time": "7 d"})).partition_rule is None
    )
    assert datetime.fromtimestamp(NEW_YEAR / 10**9, UTC) == datetime(2026, 1, 1, tzinfo=UTC)
