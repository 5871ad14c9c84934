"""Workers of Spark that are killed while they send rows of an eventual log, before the snapshot of those rows exists.

Steps      1 a statement whose rows go to Spark tasks  2 a thread kills random Python workers  3 Spark runs their tasks
           again, which sends their rows once more  4 rows of the table are what a dict says; the topic's last message
           of each key too; each marker keeps its promise
INVARIANT  only processes below this one are killed.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

from integration_tests.kafka.eventual import (
    check_markers,
    open_engine,
    options_of,
    settings_of_table,
    stored_rows,
    topic_rows,
)
from tablestore_engine.api import TableSpec, WriteSpec
from tablestore_engine.runtime.outside_world import SYSTEM

_MASTER = "local[2, 20]"  # a task may die that often
_ROWS, _KEYS, _KILLS_OF_ONE = 3_000, 9_000, 2


def kill_workers(seed: int, kills: int, folder: Path, url: str) -> dict[str, int]:
    """At least so many. Raises AssertionError with the seed."""
    chance, killed, statements = random.Random(seed), 0, 0
    expected: dict[int, str] = {}
    with ExitStack() as stack:
        stack.enter_context(
            patch("tablestore_engine.warehouse.write.frame_rows.collect_small", lambda _, **__: None)
        )
        stack.enter_context(patch("tablestore_engine.spark.task_placement.SMALL_BYTES", 0))
        engine = stack.enter_context(open_engine(folder / "spark-warehouse", url, master=_MASTER))
        topic = f"chaos-executors-{seed}-{SYSTEM.new_uuid()}"
        engine.create_database("d")
        rows = engine.query("select id, 'first' as v from range(10)").toArrow()
        made = TableSpec(primary_key=("id",), options={**options_of(topic), "bucket": "4"})
        engine.write("d.t", rows, WriteSpec(table=made))
        expected |= dict.fromkeys(range(10), "first")
        settings = settings_of_table(engine, "d.t", url)
        while killed < kills:
            statements += 1
            first, overwrites = chance.randrange(_KEYS), chance.random() < 0.2
            value = f"{statements}"
            with killing_workers(random.Random(chance.random())) as victims:
                engine.sql(
                    f"insert {'overwrite' if overwrites else 'into'} d.t "
                    f"select id, '{value}' from range({first}, {first + _ROWS})"
                )
            killed += len(victims)
            expected = {} if overwrites else expected
            expected |= dict.fromkeys(range(first, first + _ROWS), value)
            where = f"seed {seed}, statement {statements}"
            assert stored_rows(engine, "d.t") == expected, where
            assert topic_rows(settings) == expected, where
        check_markers(engine, "d.t", settings)
        messages = engine.count_log_messages("d.t")
        engine.drop_table("d.t")
    return {"workers killed": killed, "statements": statements, "messages": messages}


@contextmanager
def killing_workers(chance: random.Random) -> Iterator[list[int]]:
    """Kills some workers while the body runs."""
    victims: list[int] = []
    is_over = threading.Event()

    def kill() -> None:
        while len(victims) < _KILLS_OF_ONE and not is_over.wait(chance.uniform(0.01, 0.3)):
            workers = sorted(_workers(os.getpid()))
            if workers:
                victim = chance.choice(workers)
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    victims.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield victims
    finally:
        is_over.set()
        thread.join()


def _workers(above: int) -> Iterator[int]:
    """Python workers below a process: a daemon forks them, and they have its command line."""
    parents, lines = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid = int(stat.parent.name)
            parents[pid] = int(stat.read_text().rpartition(")")[2].split()[1])
            lines[pid] = (stat.parent / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError, IndexError):  # it is going
            continue
    for pid, line in lines.items():
        parent = parents[pid]
        if b"pyspark" in line and b"daemon" in line and b"daemon" in lines.get(parent, b""):
            ancestor = parent
            while ancestor not in (above, 0, 1):
                ancestor = parents.get(ancestor, 0)
            if ancestor == above:
                yield pid
