"""`tablestore streams`: who follows whom, and how far behind, from metadata alone."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec, stream_lags
from tablestore_engine.spi import PositionStep
from tests.unit.cli.conftest import Run


def put(engine: Engine, name: str, key: int, **more: object) -> None:
    """A commit of one row."""
    rows = pa.table({"id": [key], "v": [f"v{key}"]})
    engine.write(name, rows, WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "1"}), **more))  # type: ignore[arg-type]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """d.copy stands on snapshot 1 of d.feed, which has three; d.mirror follows a topic."""
    made = Engine(str(tmp_path / "w"))
    made.create_database("d")
    put(made, "d.feed", 1)
    step = made.table("d.feed").plan_changes(None).step
    assert step is not None
    put(made, "d.copy", 1, positions={made.table("d.feed").source: step, "query": PositionStep(None, "abc")})
    put(made, "d.mirror", 1, positions={"kafka:orders": PositionStep(None, '{"0": 17}')})
    put(made, "d.feed", 2)
    put(made, "d.feed", 1)
    return made


def test_how_far_behind_each_table_is(engine: Engine, run: Run) -> None:
    """Snapshots, changed rows (an update is two), and where a topic stands; what rows were made by is no source."""
    done = run("streams", "--warehouse", engine.warehouse, "--json")
    assert done.status == 0, done
    copy, mirror = json.loads(done.out)
    lag = copy.pop("lag")
    assert (copy["table"], copy["follows"], copy["at"], copy["newest"]) == ("d.copy", "d.feed", 1, 3)
    assert (lag["snapshots"], lag["rows"]) == (2, 3)
    assert lag["seconds"] >= 0
    assert (mirror["follows"], mirror["at"], mirror["lag"]) == ("kafka:orders", '{"0": 17}', None)
    assert run("streams", "--warehouse", engine.warehouse, "d.feed").status == 0
    assert "kafka:orders" in run("streams", "--warehouse", engine.warehouse).out


def test_what_cannot_go_on_is_trouble(engine: Engine, run: Run, tmp_path: Path) -> None:
    """A rollback behind the position, and a table that was created again: status 1, also where figures go to a file."""
    put(engine, "d.copy", 2, positions={engine.table("d.feed").source: _to_now(engine)})
    engine.table("d.feed").rollback(2)
    done = run("streams", "--warehouse", engine.warehouse, "d.copy", "--json")
    assert done.status == 1
    assert "TS1474" in json.loads(done.out)[0]["trouble"]
    engine.drop_table("d.feed")
    put(engine, "d.feed", 1)
    file = tmp_path / "streams.prom"
    done = run("streams", "--warehouse", engine.warehouse, "--prometheus", str(file))
    assert done.status == 1
    assert "created again" in done.err
    lines = file.read_text().splitlines()
    assert sum(line.startswith("tablestore_stream_up{") and line.endswith(" 0") for line in lines) == 1
    assert 'tablestore_stream_up{table="d.mirror",follows="kafka:orders"} 1' in lines


def test_figures_for_prometheus(engine: Engine, run: Run, tmp_path: Path) -> None:
    """The same as in JSON; what is not known has no line."""
    file = tmp_path / "streams.prom"
    assert run("streams", "--warehouse", engine.warehouse, "--prometheus", str(file)).status == 0
    text = file.read_text()
    assert 'tablestore_stream_lag_snapshots{table="d.copy",follows="d.feed"} 2' in text
    assert 'tablestore_stream_lag_rows{table="d.copy",follows="d.feed"} 3' in text
    assert 'tablestore_stream_lag_snapshots{table="d.mirror"' not in text


def _to_now(engine: Engine) -> PositionStep:
    source = engine.table("d.feed")
    step = source.plan_changes(engine.table("d.copy").positions()[source.source]).step
    assert step is not None
    return step


def test_python_gets_the_lags_that_the_command_prints(engine: Engine) -> None:
    """Every table of the warehouse, or those that are named; the time is that of the oldest snapshot not taken."""
    copy, mirror = stream_lags(engine)
    assert (copy.table, copy.follows, copy.trouble) == ("d.copy", "d.feed", None)
    assert copy.lag is not None
    assert (copy.lag.at, copy.lag.newest, copy.lag.snapshots, copy.lag.rows) == (1, 3, 2, 3)
    oldest = engine.table("d.feed").store.snapshots.get(2).time_millis
    assert copy.lag.seconds(oldest + 1500) == 1.5
    assert (mirror.follows, mirror.position, mirror.lag) == ("kafka:orders", '{"0": 17}', None)
    assert stream_lags(engine, ["d.mirror"]) == (mirror,)
