"""Publishes d.t by Spark tasks, however little is pending, in a process of its own: argv = warehouse, url, master."""

from __future__ import annotations

import sys

from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.spark import task_placement


def main(warehouse: str, url: str, master: str) -> None:
    """Prints how far the log is."""
    task_placement.SMALL_BYTES = -1
    log = {"kafka.bootstrap.servers": url}
    with Engine(warehouse, log=log, spark=SparkSettings(master), environ={}) as engine:
        engine.sql("select 1")
        print("ready", flush=True)
        engine.table("d.t").publish()
        status = engine.table("d.t").log_status()
        assert status is not None
        print(status.state.reached)


if __name__ == "__main__":
    main(*sys.argv[1:])
