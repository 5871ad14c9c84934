"""Writers of tables of all merge engines, killed with SIGKILL: the dose of the day, and the 500 kills of the night.

A run of the night that is stopped goes on with its next table: see soak/kill_runs.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from integration_tests.soak.kill_judge import judge
from integration_tests.soak.kill_runs import kill_many
from integration_tests.soak.killed_tables import ENGINES, table_of_seed
from integration_tests.soak.killed_writer import NAME, acks_of, user_of
from integration_tests.soak.spark_task_kills import kill_tasks
from integration_tests.soak.writer_kills import kill_writers
from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo

SEED = int(os.environ.get("TABLESTORE_SEED", "739580"))
KILLS = 500


def test_killed_writers_lose_and_double_nothing(tmp_path: Path) -> None:
    """What they acknowledged is there once, and each snapshot shows its command; two faults are noticed: a commit that
    is no command, and one that is gone.
    """
    report = kill_writers(SEED, 3, tmp_path)
    assert report.kills >= 3
    assert report.acknowledged > 0
    table = table_of_seed(SEED)
    with Engine(str(tmp_path / "warehouse")) as engine:
        handle = engine.table(NAME)
        spec = WriteSpec(commit_user=user_of(0), commit_identifier=10**6)
        row = handle.scan().to_arrow().slice(0, 1)  # with a new key: some engines keep a stored row
        at = row.schema.get_field_index("id")
        handle.write(
            row.set_column(at, row.schema.field(at), pa.array([12_345], row.schema.field(at).type)), spec
        )
        with pytest.raises(AssertionError, match=f"seed {SEED}"):
            judge(tmp_path, table)
        handle.rollback(max(int(one) for one in acks_of(tmp_path, 0).values()) - 1)
        with pytest.raises(AssertionError, match="ack"):
            judge(tmp_path, table)


@pytest.mark.nightly
def test_many_tables_with_and_without_logs_lose_and_double_nothing(broker: BrokerInfo) -> None:
    """Each engine, with the seed of the night, and a broker for every fourth table."""
    report = kill_many(10 * SEED, KILLS, broker.url)
    assert report.kills >= KILLS
    assert {engine for engine, *_ in report.mix} == {*ENGINES}


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(2))
def test_killed_tasks_of_spark_lose_and_double_nothing(number: int, tmp_path: Path) -> None:
    """The same commands, whose bucket tasks run in workers that are killed."""
    assert kill_tasks(10 * SEED + number, 8, tmp_path).kills >= 8
