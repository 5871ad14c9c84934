"""Options of format("tablestore"): what they say, and what is refused by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import datasource as ds

from tablestore_engine.datasource.admission import Limits
from tablestore_engine.datasource.batch_reader import predicate_of
from tablestore_engine.datasource.kind_policy import KindPolicy, RowKinds
from tablestore_engine.datasource.source_options import (
    parse_address,
    parse_read,
    parse_stream,
    parse_write,
    shows_changes,
)
from tablestore_engine.datasource.spark_source import TablestoreStreamWriter
from tablestore_engine.datasource.staged_write import TableWrite
from tablestore_engine.datasource.stream_reader import INITIAL, decode_offset
from tablestore_engine.errors import EngineBug, FixRequest, TablestoreError
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import new_schema
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.store.read.predicate import ANYTHING, Compare, Missing, OneOf, Prefix
from tablestore_engine.stream.startup_mode import StartupMode, StartupRequest
from tests.unit.datasource.query_world import struct

AT = {"warehouse": "/wh", "table": "demo.t"}


def code_of(act: Callable[[], object]) -> str:
    """What it is refused with."""
    with pytest.raises(TablestoreError) as error:
        act()
    return error.value.code


def test_an_address_is_a_warehouse_and_a_table_or_a_path() -> None:
    """The same table either way; a relative one is refused, since workers run elsewhere."""
    assert (
        parse_address(AT)
        == parse_address({"PATH": "/wh/demo.db/t/"})
        == parse_address({"path": "file:///wh/demo.db/t"})
    )
    for wrong in (
        {},
        {"table": "demo.t"},
        {"warehouse": "./wh", "table": "demo.t"},
        {"path": "/wh/demo/t"},
        {"path": "demo.db/t"},
        {**AT, "path": "/wh/demo.db/t"},
    ):
        assert code_of(lambda wrong=wrong: parse_address(wrong)) == "TS1441"


def test_words_of_paimon_and_of_spark_say_the_same_start() -> None:
    """Without case; both at once are refused."""
    for options, start in (
        (
            {"scan.mode": "from-snapshot", "scan.snapshot-id": "5"},
            StartupRequest(StartupMode.FROM_SNAPSHOT, 5),
        ),
        ({"startingversion": "5"}, StartupRequest(StartupMode.FROM_SNAPSHOT, 5)),
        ({"startingVersion": "latest"}, StartupRequest(StartupMode.LATEST)),
        ({"startingTimestamp": "1970-01-02"}, StartupRequest(StartupMode.FROM_TIMESTAMP, None, 86_400_000)),
        (
            {"startingTimestamp": "1970-01-01T01:00:01+01:00"},
            StartupRequest(StartupMode.FROM_TIMESTAMP, None, 1000),
        ),
        ({"log.scan": "full"}, StartupRequest(StartupMode.LATEST_FULL)),
        ({}, None),
    ):
        assert parse_stream({**AT, **options}, shows_kinds=True).start == start
    for options in (
        {"startingVersion": "0"},
        {"startingVersion": "-3"},
        {"startingTimestamp": "yesterday"},
        {"startingVersion": "1", "scan.mode": "latest"},
        {"startingVersion": "1", "startingTimestamp": "1970-01-02"},
        {"skipDeletes": "yes"},
        {"rowKinds": "some"},
        {"maxRowsPerTrigger": "0"},
        {"maxBytesPerTrigger": "1m"},
    ):
        assert code_of(lambda options=options: parse_stream({**AT, **options}, shows_kinds=True)) == "TS1442"


def test_limits_and_kinds() -> None:
    """As they are said; Paimon's names of limits too. Without a column of kinds only appends are taken."""
    options = {"maxSnapshotsPerTrigger": "2", "read.stream.maxRowsPerTrigger": "3", "maxBytesPerTrigger": "4"}
    assert parse_stream({**AT, **options}, shows_kinds=True).limits == Limits(2, 3, 4)
    assert parse_stream(AT, shows_kinds=True).kinds == KindPolicy(RowKinds.ALL)
    assert parse_stream(AT, shows_kinds=False).kinds == KindPolicy(RowKinds.APPENDS)
    assert code_of(lambda: parse_stream({**AT, "rowKinds": "all"}, shows_kinds=False)) == "TS1442"


@pytest.mark.parametrize(
    ("parse", "options", "near"),
    [
        (lambda said: parse_stream(said, shows_kinds=True), {"maxRowPerTrigger": "1"}, "maxRowsPerTrigger"),
        (parse_read, {"scan.snapshotid": "1"}, "scan.snapshot-id"),
        (parse_write, {"duplicate": "last"}, "duplicates"),
        (parse_read, {"consumer-id": "x"}, ""),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest(
    parse: Callable[[dict[str, str]], object], options: dict[str, str], near: str
) -> None:
    """Also one that another use of the source knows."""
    with pytest.raises(FixRequest) as error:
        parse({**AT, **options})
    assert error.value.code == "TS1440"
    assert near in error.value.fix


def test_spark_puts_options_of_its_own_among_those_of_a_writer() -> None:
    """The checkpoint's folder and the query's name are no mistakes."""
    assert (
        parse_write({**AT, "checkpointlocation": "/c", "queryname": "q"}).on_schema_change == "same_columns"
    )


def test_one_state_is_read() -> None:
    """Two ways to say which are refused; a range brings the columns of a changelog."""
    assert code_of(lambda: parse_read({**AT, "scan.snapshot-id": "1", "scan.tag-name": "x"})) == "TS1442"
    assert code_of(lambda: parse_read({**AT, "incremental-between": "5,1"})) == "TS1442"
    assert shows_changes({"incremental-between": "1,2"})
    assert not shows_changes({})
    assert not shows_changes({"incremental-between": "1,2", "read.changelog": "false"})


def test_an_offset_of_somebody_else_is_refused() -> None:
    """TS1444, and TS1334 for a damaged position."""
    assert decode_offset(dict(INITIAL)) is None
    assert code_of(lambda: decode_offset({"version": 2})) == "TS1444"
    assert code_of(lambda: decode_offset({"version": 1, "begin": {}})) == "TS1444"
    assert code_of(lambda: decode_offset({"p": {"0": 5}})) == "TS1444"
    assert code_of(lambda: decode_offset({"version": 1, "begin": {}, "end": {}})) == "TS1334"


def test_a_task_that_does_not_know_its_batch_stages_nothing() -> None:
    """Outside of Spark there is no query (TS1453)."""
    writer = TablestoreStreamWriter(
        TableWrite(parse_address(AT), parse_write(AT), struct("id bigint"), False)
    )
    with pytest.raises(EngineBug) as error:
        writer.write(iter(()))
    assert error.value.code == "TS1453"


def test_conditions_are_taken_as_far_as_they_are_understood() -> None:
    """Others, times and columns within columns leave no file out."""
    types = {"id": "BIGINT", "v": "STRING", "at": "TIMESTAMP(6)", "d": "DOUBLE"}
    schema = new_schema([DataField(0, name, parse_type(text)) for name, text in types.items()])
    for said, expected in (
        (ds.EqualTo(("ID",), 5), Compare("id", "=", 5)),
        (ds.LessThan(("id",), 5), Compare("id", "<", 5)),
        (ds.LessThanOrEqual(("id",), 5), Compare("id", "<=", 5)),
        (ds.GreaterThan(("id",), 5), Compare("id", ">", 5)),
        (ds.GreaterThanOrEqual(("id",), 5), Compare("id", ">=", 5)),
        (ds.In(("id",), (1, 2, None)), OneOf("id", frozenset({1, 2}))),
        (ds.IsNull(("v",)), Missing("v")),
        (ds.IsNotNull(("v",)), Missing("v", negated=True)),
        (ds.StringStartsWith(("v",), "a"), Prefix("v", "a")),
        (ds.EqualTo(("id",), "five"), ANYTHING),
        (ds.EqualTo(("d",), float("nan")), ANYTHING),
        (ds.EqualTo(("at",), 5), ANYTHING),
        (ds.EqualTo(("v", "x"), 5), ANYTHING),
        (ds.EqualTo(("nothing",), 5), ANYTHING),
        (ds.In(("id",), (1, "two")), ANYTHING),
        (ds.Not(ds.EqualTo(("id",), 5)), ANYTHING),
        (ds.StringEndsWith(("v",), "a"), ANYTHING),
        (ds.EqualNullSafe(("id",), 5), ANYTHING),
    ):
        assert predicate_of(said, schema) == expected
