"""Tables without a key keep no changelog, and their log has all the same what was deleted and overwritten."""

from __future__ import annotations

import uuid
from collections import Counter
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, SameKeys, SparkSettings, TableSpec, WriteMode, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.log.decode import decode_rows
from tests.doses import case_rows

ADDS = (RowKind.INSERT, RowKind.UPDATE_AFTER)


def _rows(ids: list[int], day: str, value: str) -> pa.Table:
    return pa.table({"id": ids, "day": [day] * len(ids), "v": [value] * len(ids)})


def _multiset(rows: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter((row["id"], row["day"], row["v"]) for row in rows.to_pylist())


def _check(engine: Engine) -> None:
    """Messages from the beginning, applied as they come, never take what is not there and give the table."""
    table = engine.table("d.t")
    held: Counter[tuple[object, ...]] = Counter()
    messages = sorted(table.log_messages(), key=lambda one: one.snapshot_id or 0)
    for row in decode_rows(messages, table.schema).to_pylist():
        held[row["id"], row["day"], row["v"]] += 1 if row[ROW_KIND_COLUMN] in ADDS else -1
    assert min(held.values(), default=0) >= 0
    assert +held == _multiset(table.scan().to_arrow())


@pytest.mark.parametrize(
    ("mode", "layout"),
    case_rows(
        list(product(["auto", "all"], [{"log.system.partitions": "3"}, {"bucket": "2", "bucket-key": "id"}])),
        1,
    ),
)
def test_the_log_of_a_table_without_a_key_has_its_deletes(
    broker: BrokerInfo, tmp_path: Path, mode: str, layout: dict[str, str]
) -> None:
    """Appended twice, delete+insert, SQL DELETE, a partition and then the whole table overwritten: after each commit
    the topic is the table, as a multiset.
    """
    options = {
        "changelog-producer": "none",
        "log.system": "kafka",
        "log.changelog-mode": mode,
        "kafka.topic": f"append-{uuid.uuid4().hex}",
        **layout,
    }
    spec = TableSpec(partition_by=("day",), options=options)
    with Engine(
        str(tmp_path), spark=SparkSettings("local[2]"), log={"kafka.bootstrap.servers": broker.url}
    ) as engine:

        def write(rows: pa.Table, how: WriteMode, replaces: SameKeys | None = None) -> None:
            engine.write("d.t", rows, WriteSpec(table=spec, mode=how, replaces=replaces))
            _check(engine)

        write(_rows([1, 2, 2, 3, 4], "a", "x"), WriteMode.APPEND)
        write(_rows([5, 6, 6, 7], "b", "x"), WriteMode.APPEND)
        write(_rows([2, 6], "a", "y"), WriteMode.REPLACE, SameKeys(("id",)))
        engine.sql("delete from d.t where id in (3, 7)")
        _check(engine)
        write(_rows([8], "b", "z"), WriteMode.OVERWRITE_PARTITIONS)
        write(_rows([9, 9], "c", "z"), WriteMode.OVERWRITE_TABLE)
        assert _multiset(engine.table("d.t").scan().to_arrow()) == {(9, "c", "z"): 2}
        sent = Counter(message.kind for message in engine.table("d.t").log_messages())
        assert sent[RowKind.DELETE] == sent[RowKind.INSERT] - 2
