"""No option value ends in a raw error: each is taken, and works, or is refused by the name of its key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import TablestoreError
from tablestore_engine.log.kafka.kafka_client import Reasons, make_producer
from tablestore_engine.log.kafka.settings import resolve_log
from tablestore_engine.options import OPTIONS, Scope, check_options
from tests.doses import cases

VALUES = ("", "x", "-1", "0", "9" * 40, "NaN", "1e999", "a\0b", " ", "ü", "٣", "1_0", "a/..", "9" * 5000)
LOG = {
    "log.system": "kafka",
    "kafka.topic": "t",
    "tablestore.table-uuid": "u",
    "changelog-producer": "lookup",
}
PROFILE = {"kafka.bootstrap.servers": "127.0.0.1:1"}
OF_LOG = [key for key, row in OPTIONS.items() if row.scope is Scope.LOG] + ["tablestore.table-uuid"]
OF_TABLE = [key.replace("<column>", "v") for key in OPTIONS if not key.startswith(("log.", "kafka."))]
ROWS = pa.table({"id": [1, 2, 2], "day": ["a", "b", None], "v": ["x", None, "y"]})


@pytest.mark.parametrize("value", cases(VALUES, 3), ids=ascii)
@pytest.mark.parametrize("key", OF_TABLE)
def test_of_a_table(tmp_path: Path, key: str, value: str) -> None:
    """Refused by its key at once, else written twice, folded and read, with a key and without, or refused by its key
    without a table left.
    """
    refused = _refusal(partial(check_options, {key: value}))
    if refused is not None:
        assert key in str(refused)
        return
    for number, keys in enumerate((("id", "day"), ())):
        rows = ROWS.slice(0, 2) if keys else ROWS
        spec = WriteSpec(table=TableSpec(primary_key=keys, partition_by=("day",), options={key: value}))
        with Engine(str(tmp_path / str(number))) as engine:
            refused = _refusal(partial(engine.write, "d.t", rows, spec))
            if refused is not None:
                assert key in str(refused)
                assert engine.find_table("d.t") is None
                continue
            engine.write("d.t", rows, spec)
            table = engine.table("d.t")
            table.compact(full=True)
            assert table.scan().to_arrow().num_rows == (2 if keys else 6)
            assert table.verify() == ()


@pytest.mark.parametrize("value", VALUES, ids=ascii)
@pytest.mark.parametrize("key", OF_LOG)
def test_of_a_log(key: str, value: str) -> None:
    """As far as a real client that has no broker."""
    options = {**LOG, key: value}

    def use() -> None:
        check_options(options)
        settings = resolve_log(options, PROFILE, table="d.t", is_keyed=True)
        if settings is not None:
            make_producer(settings.client, settings.transactional_id, lambda *_: None, Reasons())

    refused = _refusal(use)
    assert refused is None or key in str(refused)


def _refusal(action: Callable[[], object]) -> TablestoreError | None:
    """The error of ours that ends the action; any other one ends the test."""
    try:
        action()
    except TablestoreError as error:
        return error
    return None
