"""What must be there before anything can work, tried one by one with one line each.

INVARIANT  the first problem is raised as the error that a build would meet; nothing is left behind.
"""

from __future__ import annotations

from tablestore_engine.runtime.java import find_java
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
    lines.append(warehouse.resolver.reads.sentence)
    reached = warehouse.logs.system.check_reachable()
    if reached is not None:
        lines.append(reached)
    return tuple(lines)
