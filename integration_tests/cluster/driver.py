"""A driver program of its own, which may be killed: argv[1] is a JSON object, see Order.

Usage      python -m integration_tests.cluster.driver '{"warehouse": …}'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from integration_tests.cluster.faults import Fault
from integration_tests.cluster.work import prepare, run
from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.spark import task_placement

_SECONDS = 900  # an upper bound for a run that hangs; no result depends on it


@dataclass(frozen=True)
class Order:
    """`prepares`: the table is made first. `brokers`: empty for a table without a log."""

    warehouse: str
    master: str
    conf: Mapping[str, str]
    kind: str
    fault: str
    mark: str
    prepares: bool = True
    topic: str | None = None
    brokers: str = ""


def open_engine(order: Order) -> Engine:
    """As the order has it."""
    log = {"kafka.bootstrap.servers": order.brokers} if order.brokers else None
    return Engine(order.warehouse, spark=SparkSettings(order.master, order.conf), log=log, environ={})


def start(order: Order) -> int:
    """Run it in a process of its own; its exit status, negative for a signal."""
    command = [sys.executable, "-m", "integration_tests.cluster.driver", json.dumps(asdict(order))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode in (0, -9), done.stderr[-4000:]
    return done.returncode


def main(text: str) -> None:
    """Perform the order."""
    order = Order(**json.loads(text))
    task_placement.SMALL_BYTES = -1
    with open_engine(order) as engine:
        engine.sql("select 1")
        if order.prepares:
            prepare(engine, order.kind, order.topic)
        run(engine, order.kind, Fault(order.fault), Path(order.mark), os.getpid())


if __name__ == "__main__":
    main(sys.argv[1])
