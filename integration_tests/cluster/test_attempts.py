"""Tasks that run twice, and processes that die under them: one snapshot, every row and message once, no files left."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark import SparkContext

from integration_tests.cluster.driver import Order, open_engine, start
from integration_tests.cluster.faults import Fault, strike, struck_write
from integration_tests.cluster.work import KINDS, ROWS, check
from integration_tests.kafka.eventual import settings_of_table
from integration_tests.kafka.test_shards import check as check_log
from integration_tests.warehouse_address import warehouse_address
from tablestore_engine.api import Engine, FixRequest, SparkSettings, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo

pytestmark = pytest.mark.nightly
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "500ms",
}


def _order(
    settings: SparkSettings, folder: Path, kind: str, fault: Fault, broker: BrokerInfo, **conf: str
) -> Order:
    topic = f"c-{uuid.uuid4().hex}" if kind == "publish" else None
    return Order(
        warehouse=warehouse_address(str(folder / "warehouse")),
        master=settings.master,
        conf={**settings.conf, **conf},
        kind=kind,
        fault=str(fault),
        mark=str(folder / "struck"),
        topic=topic,
        brokers=broker.url if topic else "",
    )


def _check(order: Order, kind: str, fault: Fault, broker: BrokerInfo) -> None:
    """The table without Spark, and its log."""
    with open_engine(order) as engine:
        check(engine, kind, leaves_files=kind != "publish")
        if kind == "publish":
            check_log(engine, settings_of_table(engine, "d.t", broker.url))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.EXECUTOR_KILLED, Fault.WORKER_KILLED])
def test_attempt_lost_after_its_work_counts_once(
    settings: SparkSettings, tmp_path: Path, broker: BrokerInfo, kind: str, fault: Fault
) -> None:
    """An attempt fails, or dies with its executor or its worker, when its files are written or its messages sent; Spark
    runs the task again.
    """
    order = _order(settings, tmp_path, kind, fault, broker)
    assert start(order) == 0
    assert Path(order.mark).exists(), "no attempt was struck"
    _check(order, kind, fault, broker)


@pytest.mark.parametrize("kind", KINDS)
def test_speculative_attempt_beside_a_slow_one_counts_once(
    settings: SparkSettings, tmp_path: Path, broker: BrokerInfo, kind: str
) -> None:
    """With speculation an attempt that has written and then hangs is overtaken by a second one; publishing stays in the
    driver, where no attempt can fence another.
    """
    order = _order(settings, tmp_path, kind, Fault.SLOW, broker, **SPECULATION)
    assert start(order) == 0
    assert Path(order.mark).exists() is (kind != "publish")
    _check(order, kind, Fault.SLOW, broker)


@pytest.mark.parametrize("kind", KINDS)
def test_driver_killed_under_its_tasks_then_run_again(
    settings: SparkSettings, tmp_path: Path, broker: BrokerInfo, kind: str
) -> None:
    """The driver dies while a task has done its work: nothing was committed, and the same command then does it once."""
    order = _order(settings, tmp_path, kind, Fault.DRIVER_KILLED, broker)
    assert start(order) == -9
    again = Order(**{**vars(order), "prepares": False, "fault": str(Fault.NONE)})
    assert start(again) == 0
    _check(again, kind, Fault.DRIVER_KILLED, broker)


def test_rows_that_differ_when_computed_again_are_never_mixed(engine: Engine, tmp_path: Path) -> None:
    """An executor dies whose rows others have read in part, and the query gives other rows the second time: every row
    of one run of it, or an error that leaves the table as it was.
    """
    mark, gate = tmp_path / "struck", tmp_path / "another task has ended"
    act = strike(Fault.EXECUTOR_KILLED, mark, os.getpid(), gate)

    def keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        for batch in batches:
            drawn = [os.urandom(8).hex() for _ in range(batch.num_rows)]
            yield pa.RecordBatch.from_pydict({"id": drawn, "n": batch.column(0)})

    rows = engine.spark.range(0, ROWS, 1, 4).mapInArrow(keys, "id string, n bigint")
    table = WriteSpec(TableSpec(primary_key=("id",), options={"bucket": "4"}))
    is_over = threading.Event()
    opener = threading.Thread(target=_open_gate, args=(engine.spark.sparkContext, mark, gate, is_over))
    opener.start()
    try:
        with patch("tablestore_engine.spark.write._run_task", struck_write(act)):
            is_committed = _is_committed(lambda: engine.write("demo.t", rows, table))
    finally:
        is_over.set()
        opener.join()
    assert gate.exists(), "no attempt was struck behind the end of another task"
    found = engine.find_table("demo.t")
    told = [] if found is None else found.scan().to_arrow().column("n").to_pylist()
    assert sorted(told) == (list(range(ROWS)) if is_committed else [])


def _open_gate(context: SparkContext, mark: Path, gate: Path, is_over: threading.Event) -> None:
    """Once an attempt waits to be struck, and another task of its stage has ended."""
    tracker = context.statusTracker()
    while not is_over.wait(0.1):
        stages = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
        if mark.exists() and any(one is not None and one.numCompletedTasks for one in stages):
            gate.touch()
            return


def _is_committed(write: Callable[[], object]) -> bool:
    """Of an error nothing but Spark's refusal is fine."""
    try:
        write()
    except FixRequest as error:
        return _is_other(error)
    return True


def _is_other(error: FixRequest) -> bool:
    """False for what Spark says where it would have to mix rows; raises anything else."""
    if "rollback the ResultStage" in error.why:
        return False
    raise error
