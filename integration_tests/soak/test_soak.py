"""Small doses of the long attacks, with a new seed each day; `make soak` gives the whole dose."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from integration_tests.interop.ours import Ours
from integration_tests.soak.killed_writer import table_of, user_of
from integration_tests.soak.random_tables import attack_table, random_table
from integration_tests.soak.writer_kills import judge, kill_writers
from tests.unit.store.table_world import as_table

TODAY = dt.datetime.now(dt.UTC).date().toordinal()


@pytest.mark.parametrize("turn", range(6))
def test_a_random_table_is_what_the_dict_says(turn: int, tmp_path: Path) -> None:
    """Rows, changelog and file invariants of a random history agree with the oracle after each commit."""
    seed = 10 * TODAY + turn
    assert attack_table(random_table(seed), tmp_path / "warehouse" / "soak.db" / "t", []) >= 2


def test_killed_writers_lose_and_double_nothing(tmp_path: Path) -> None:
    """What killed writers acknowledged is there once, each snapshot shows its command; a fault would be noticed."""
    report = kill_writers(TODAY, 8, tmp_path)
    assert report.kills >= 8
    assert report.acknowledged > 0
    store = Ours().store(table_of(tmp_path))
    row = {"id": 5, "writer": "nobody", "turn": 0, "text": ""}
    Ours().write(
        table_of(tmp_path), as_table([row], store.schema), commit_user=user_of(0), commit_identifier=10**6
    )
    with pytest.raises(AssertionError, match=f"seed {TODAY}"):
        judge(tmp_path, TODAY, report.kills)
    newest = store.snapshots.list_ids()[-1]
    store.rollback(newest - 3)
    with pytest.raises(AssertionError, match="ack"):
        judge(tmp_path, TODAY, report.kills)
