"""A writer whose bucket tasks run in Spark, and whose Python workers are killed: Spark runs their tasks again.

Steps      1 one driver runs the commands of killed_writer.py, each bucket task in Spark  2 a thread kills workers
           meanwhile  3 kill_judge.py judges, as it does of killed writers
INVARIANT  only processes below this one are killed.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from unittest.mock import patch

from integration_tests.chaos.executors import killing_workers
from integration_tests.soak.kill_judge import judge
from integration_tests.soak.killed_tables import table_of_seed
from integration_tests.soak.killed_writer import acknowledge, command_of, next_turn, table_folder, turns_of
from integration_tests.soak.merged_before import leave_versions
from integration_tests.soak.writer_kills import KillReport
from tablestore_engine.api import SparkSettings
from tablestore_engine.spark import task_placement

_MASTER = "local[2, 20]"  # a task may die that often
_TURNS_MAX = 200


def kill_tasks(seed: int, kills: int, root: Path) -> KillReport:
    """One table in the empty folder `root`, at least so many killed workers. Raises AssertionError with the seed."""
    table, chance, mix = table_of_seed(seed), random.Random(seed), Counter[tuple[str, str, str, str]]()
    if table.is_converted:
        leave_versions(table, table_folder(root))
    with (
        patch.object(task_placement, "SMALL_BYTES", -1),
        turns_of(root, table, 0, "", SparkSettings(_MASTER)) as run,
    ):
        while mix.total() < kills and next_turn(root, 0) < _TURNS_MAX:
            turn = next_turn(root, 0)
            with killing_workers(random.Random(chance.random())) as victims:
                snapshot = run(turn)
            acknowledge(root, 0, turn, snapshot)
            work = command_of(table, 0, turn).work
            mix[table.engine, table.producer, f"{table.buckets}, Spark", work] += len(victims)
        while command_of(table, 0, next_turn(root, 0)).work != "write":
            acknowledge(root, 0, next_turn(root, 0), run(next_turn(root, 0)))
        acknowledge(root, 0, next_turn(root, 0), run(next_turn(root, 0)))
    acknowledged, snapshots = judge(root, table)
    return KillReport(mix.total(), acknowledged, snapshots, +mix)
