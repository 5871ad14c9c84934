"""Every crash point of the store × every scenario: after reopening the table is before or after, and the same
command converges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.format.schema_change import add_column
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.runtime.outside_world import CRASH_POINTS
from tablestore_engine.store.orphan_files.clean_orphans import OrphanRequest
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.doses import examples
from tests.doubles.faults import SimulatedCrash, counting, crashing, seeded_runtime
from tests.unit.store.expiry_world import newest
from tests.unit.store.table_world import Row, as_table, delete, make_table, open_table, put, row, rows_of

POINTS = sorted(
    name
    for name in CRASH_POINTS
    if not name.startswith(("log.", "replace.", "stage.drop", "iceberg.", "branch."))
)
FIRST = [row(number) for number in range(5)]
Command = Callable[[TableStore], object]


def upsert(store: TableStore) -> None:
    """Updates and inserts in one commit."""
    put(store, row(1, "b"), row(9), commit_user="job", commit_identifier=1)


def remove(store: TableStore) -> None:
    """A delete-only commit."""
    delete(store, {"id": 1}, {"id": 2}, commit_user="job", commit_identifier=1)


def refresh(store: TableStore) -> None:
    """A full refresh."""
    put(
        store,
        row(1),
        row(7),
        mode=WriteMode.OVERWRITE_TABLE,
        commit_user="job",
        commit_identifier=1,
    )


def fold_and_upsert(store: TableStore) -> None:
    """The upsert after which nothing is left to fold: see the preparation of the scenario."""
    put(store, row(1, "folded"), commit_user="job", commit_identifier=1)


def stage_and_publish(store: TableStore) -> None:
    """What a gated model does; the second run of the same command goes on where the first died."""
    put(store, row(1, "staged"), stage="gate", commit_user="job", commit_identifier=1)
    if store.staging.find("gate") is not None:
        store.staging.publish("gate")


def widen(store: TableStore) -> None:
    """A new column with rows that use it."""
    current = store.schema
    known = "extra" in current.field_names
    schema = current if known else replace(add_column(current, "extra", parse_type("INT")), id=current.id + 1)
    rows = as_table([{**row(1), "extra": 1}], schema)
    new = None if known else schema
    store.write(WriteRequest(rows, new_schema=new, commit_user="job", commit_identifier=1))


def compact(store: TableStore) -> None:
    """A full compaction: no row changes."""
    store.compact(full=True)


def expire(store: TableStore) -> None:
    """A commit with what it takes away."""
    put(store, row(1, "b"), row(9), commit_user="job", commit_identifier=1)
    store.expire(newest(1))


def clean(store: TableStore) -> None:
    """A commit, and what others left goes."""
    put(store, row(1, "b"), row(9), commit_user="job", commit_identifier=1)
    store.orphans(OrphanRequest(grace_ms=-(1 << 60), delete=True))  # clocks of tests begin anew


def roll_back(store: TableStore) -> None:
    """Back to the first snapshot, which has the same rows."""
    store.rollback(1)


def restore(store: TableStore) -> None:
    """The rows of the second snapshot again, as the newest one."""
    store.restore(store.snapshots.get(2))


def add_up(store: TableStore) -> None:
    """Values that a merge engine adds to what is there, in rows whose key comes twice."""
    put(
        store,
        row(1, None, 2),
        row(1, "b", 3),
        row(9),
        duplicates="last",
        commit_user="job",
        commit_identifier=1,
    )


def rescale(store: TableStore) -> None:
    """Three buckets."""
    store.rescale(3)


SCENARIOS: dict[str, tuple[Command, list[Row]]] = {
    "upsert": (upsert, [row(0), row(1, "b"), row(2), row(3), row(4), row(9)]),
    "remove": (remove, [row(0), row(3), row(4)]),
    "refresh": (refresh, [row(1), row(7)]),
    "fold": (fold_and_upsert, [row(0), row(1, "folded"), row(2), row(3), row(4)]),
    "stage": (stage_and_publish, [row(0), row(1, "staged"), row(2), row(3), row(4)]),
    "widen": (widen, [{**one, "extra": 1 if one["id"] == 1 else None} for one in FIRST]),
    "compact": (compact, FIRST),
    "expire": (expire, [row(0), row(1, "b"), row(2), row(3), row(4), row(9)]),
    "clean": (clean, [row(0), row(1, "b"), row(2), row(3), row(4), row(9)]),
    "roll_back": (roll_back, FIRST),
    "restore": (restore, [*FIRST, row(9)]),
    "rescale": (rescale, FIRST),
    "sum": (add_up, [row(0), row(1, "b", 5), row(2), row(3), row(4), row(9)]),
    "patch": (add_up, [row(0), row(1, "b", 3), row(2), row(3), row(4), row(9)]),
    "first": (add_up, [*FIRST, row(9)]),
    "input": (add_up, [row(0), row(1, "b", 3), row(2), row(3), row(4), row(9)]),
}
OPTIONS = {
    "fold": {"num-levels": "4"},
    "compact": {"num-levels": "4"},
    "sum": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "patch": {"merge-engine": "partial-update"},
    "first": {"merge-engine": "first-row", "deletion-vectors.enabled": "false"},
    "input": {"changelog-producer": "input"},
}
WITHOUT_COMMIT = ("compact", "roll_back", "restore", "rescale")


def prepare(root: Path, scenario: str) -> None:
    """A table with five rows; for folding, with as many runs as a bucket may have."""
    store = make_table(root, options=OPTIONS.get(scenario, {}))
    put(store, *FIRST)
    if scenario in ("fold", "compact"):
        for turn in range(2):
            put(store, row(3, f"turn {turn}"))
        put(store, row(3))
    if scenario == "clean":
        put(store, row(3, "dropped"), stage="no")
        store.staging.discard("no")
    if scenario == "restore":
        put(store, row(9))
        delete(store, row(9))
    if scenario in ("expire", "roll_back"):
        for _ in range(3):
            put(store, row(3))


def passed_points(root: Path, scenario: str) -> Counter[str]:
    """How often the scenario's command passes each crash point, when it ends well."""
    prepare(root, scenario)
    passed: Counter[str] = Counter()
    SCENARIOS[scenario][0](open_table(root, runtime=counting(seeded_runtime(1), passed)))
    return Counter({point: passed[point] for point in POINTS if passed[point]})


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
def test_a_crash_leaves_before_or_after_and_the_command_converges(tmp_path: Path, scenario: str) -> None:
    """At each point that the command passes: reopened after the crash, every invariant holds, old or new rows; run
    again: the new ones, once. At night also when it passes a point for the second time.
    """
    passed = passed_points(tmp_path / "whole", scenario)
    check_again(tmp_path / "whole", scenario, f"{scenario}, without a crash")
    for point, count in passed.items():
        for nth in range(1, min(count, examples(1, 2)) + 1):
            check_crash(tmp_path / f"{point} {nth}", scenario, point, nth)


def check_crash(root: Path, scenario: str, point: str, nth: int) -> None:
    """One crash, and the same command again."""
    where = f"{scenario}, {point}, time {nth}"
    prepare(root, scenario)
    with pytest.raises(SimulatedCrash):
        SCENARIOS[scenario][0](
            open_table(root, runtime=crashing(seeded_runtime(POINTS.index(point)), point, nth))
        )
    check_again(root, scenario, where)


def check_again(root: Path, scenario: str, where: str) -> None:
    """Before or after the command; behind the same command after it, once."""
    command, expected = SCENARIOS[scenario]
    reopened = open_table(root)
    assert reopened.verify() == (), where
    assert rows_of(reopened) in (sorted(FIRST, key=repr), sorted(expected, key=repr)), where
    for staged in reopened.staging.list_all():
        assert reopened.on_staged(staged.name).verify() == (), where
    command(open_table(root))
    final = open_table(root)
    assert rows_of(final) == sorted(expected, key=repr), where
    assert final.verify() == (), where
    by_job = [one for one in final.snapshots.list_all() if one.commit_user == "job"]
    assert len(by_job) == (0 if scenario in WITHOUT_COMMIT else 1), where
    assert not list(Path(final.context.layout.expire_dir).glob("*")), where


def test_the_scenarios_reach_every_point(tmp_path: Path) -> None:
    """No crash point of the store is missed by all scenarios."""
    scenarios = ("upsert", "stage", "widen", "expire", "clean", "roll_back")
    reached = sum((passed_points(tmp_path / scenario, scenario) for scenario in scenarios), Counter())
    assert set(reached) == set(POINTS)
