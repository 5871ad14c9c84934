"""Any history of a source, told in any format, cut anywhere, by runs that die anywhere: the table is the source's."""

from __future__ import annotations

import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.runtime.outside_world import Runtime
from tests.doses import examples
from tests.unit.ingest.encoders import COLUMNS, SQL, TYPED, Event, Registry, encoders
from tests.unit.ingest.histories import (
    Killed,
    MemorySource,
    engine_at,
    fold,
    histories,
    ingest,
    spec_of,
    table_of,
)

HISTORIES = examples(3, 200)  # of each format; 200 take five minutes
FORMATS = list(encoders(Registry()))
NOISE = {
    "debezium-json": [
        (None, b'{"ts_ms":1}'), (None, b'{"status":"BEGIN","id":"7","event_count":null}'),
        (None, b'{"op":"m","source":{"table":""},"message":{}}'), (None, None),
    ],
    "canal-json": [(None, b'{"isDdl":true,"type":"ALTER","data":null,"database":"shop","table":"orders"}')],
    "maxwell-json": [
        (None, b'{"type":"table-alter","database":"shop","table":"orders"}'),
        (None, b'{"type":"bootstrap-start","database":"shop","table":"orders","data":{}}'),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@given(events=histories(), cuts=st.lists(st.integers(1, 9), max_size=3), kills=st.lists(st.integers(1, 12), max_size=3),
       noise=st.lists(st.integers(0, 25), max_size=3))  # fmt: skip
@settings(max_examples=HISTORIES, deadline=None)
def test_the_table_is_what_the_history_leaves(
    name: str, events: list[Event], cuts: list[int], kills: list[int], noise: list[int]
) -> None:
    """Batches of any size, a crash at any point of a commit, messages from which nothing follows: nothing is lost."""
    registry = Registry()
    change_format, encode = encoders(registry)[name]
    source = MemorySource()
    others: Any = NOISE.get(change_format, [])
    for at, event in enumerate(events):
        if others and at in noise:
            source.put([others[at % len(others)]])
        source.put(encode(event, COLUMNS))
    columns = {} if name in TYPED else {one: SQL[kind] for one, kind in COLUMNS.items()}
    decimals = None if name in TYPED else "base64"
    hits: list[str] = []

    def die(point: str) -> None:
        hits.append(point)
        if len(hits) in kills:
            raise Killed

    with tempfile.TemporaryDirectory() as folder, engine_at(folder, Runtime(on_crash_point=die)) as engine:
        for tries in range(20):
            spec = spec_of(
                change_format,
                columns=columns,
                decimals=decimals,
                rows_max=[*cuts, 50][tries % (len(cuts) + 1)],
            )
            try:
                ingest(engine, source, spec, registry.find)
                break
            except Killed:
                continue
        found = table_of(engine)
        wanted = {key: dict(row) for key, row in fold(events).items()}
        assert found == (wanted if name != "canal-json" else {k: _canal(v) for k, v in wanted.items()})
        if found:
            assert engine.table("d.t").positions() == {"memory": source.ends()}
            told = [
                report for report in engine.table("d.t").changes(0).to_pylist() if report["_row_kind"] == "+I"
            ]
            assert len(told) >= len(found)


def _canal(row: dict[str, Any]) -> dict[str, Any]:
    """MySQL has numbers for truth values."""
    return {**row, "flag": None if row["flag"] is None else int(row["flag"])}
