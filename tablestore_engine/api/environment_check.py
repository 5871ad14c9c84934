"""What must be there before anything can work, tried one by one with one line each.

INVARIANT  the first problem is raised as the error that a build would meet; nothing is left behind.
"""

from __future__ import annotations

from tablestore_engine.runtime.java import find_java
from tablestore_engine.spark import ship_package
from tablestore_engine.spark.worker_check import check_workers, count_executors, is_cluster
from tablestore_engine.warehouse.warehouse import Warehouse


def check_environment(warehouse: Warehouse) -> tuple[str, ...]:
    """Lines for people, in the order tried."""
    lines = []
    warehouse.catalog.check_writable()
    lines.append(f"warehouse {warehouse.path} is writable")
    lines.append(find_java().sentence)
    version = warehouse.resolver.session.version
    warehouse.resolver.query("select 1").collect()
    lines.append(f"Spark {version} answers")
    lines.extend(_check_cluster(warehouse))
    lines.append(warehouse.resolver.reads.sentence)
    reached = warehouse.logs.system.check_reachable()
    if reached is not None:
        lines.append(reached)
    return tuple(lines)


def _check_cluster(warehouse: Warehouse) -> list[str]:
    """On a cluster: that its workers run our tasks. Raises FixRequest TS1540 to TS1543."""
    context = warehouse.resolver.session.sparkContext
    if not is_cluster(context):
        return []
    ship_package.ship(warehouse.resolver.session, warehouse.session.scratch())
    answered = check_workers(context)
    lines = [f"{context.master} gives {count_executors(context)} executors"]
    return lines + [
        f"workers run Python {one.python} with the driver's versions ({one.place})" for one in answered
    ]
