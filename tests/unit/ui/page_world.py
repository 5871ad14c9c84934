"""The warehouse that the page is drawn from in tests, pictures of the docs and measurements.

INVARIANT  clock, ids and rows are fixed: the same calls give the same page.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.format.snapshot import decode_snapshot, encode_snapshot
from tablestore_engine.spi import (
    STATE_POSITION,
    Outcome,
    PositionStep,
    Staged,
    Verdict,
    pick_failing_rows,
    stage_properties,
)
from tests.doubles.faults import seeded_runtime

START_MS = 1_769_850_000_000  # 2026-01-31T09:00:00Z
MINUTE_MS = 60_000
HOSTILE = "<script>alert('x')</script>\"'&\u202eabc \U0001f600 \u05e9\u05dc\u05d5\u05dd"
UNIQUE, POSITIVE = "test.shop.unique_orders_order_id.ab12", "test.shop.orders_amount_is_positive.cd34"
STATUSES = ("placed", "packed", "sent", "returned")


@dataclass
class SetClock:
    """Stands still between the steps of a test, but for a millisecond at each look."""

    ms: int = START_MS

    def __call__(self) -> int:
        """One look."""
        self.ms += 1
        return self.ms

    def wait(self, minutes: float) -> None:
        """Time passes."""
        self.ms += int(minutes * MINUTE_MS)


def open_engine(folder: Path, clock: SetClock, seed: int = 7) -> Engine:
    """On this clock."""
    return Engine(str(folder), runtime=replace(seeded_runtime(seed), now_ms=clock), environ={})


def orders(first: int, last: int, turn: int = 0) -> pa.Table:
    """Orders first to last, as they are in that turn."""
    ids = list(range(first, last + 1))
    return pa.table(
        {
            "order_id": ids,
            "customer": [f"customer {one * 7 % 40:02}" for one in ids],
            "amount": [round(one * 3.7 % 90 + turn, 2) for one in ids],
            "status": [STATUSES[(one + turn) % 4] for one in ids],
        }
    )


def gone(*ids: int) -> pa.Table:
    """Deletions."""
    rows = orders(1, 1).slice(0, 0)
    keys = pa.table({"order_id": list(ids)})
    for name in rows.column_names[1:]:
        keys = keys.append_column(name, pa.nulls(len(ids), rows.schema.field(name).type))
    return keys.append_column("_ROW_KIND", pa.array([3] * len(ids), pa.int8()))


def build_orders(engine: Engine, clock: SetClock, name: str = "demo.orders") -> None:
    """36 commits: upserts, deletions, compactions, an overwrite, two tags, a consumer."""
    table = TableSpec(
        primary_key=("order_id",), comment="Orders of the shop, one row for each", options={"bucket": "2"}
    )
    spec = WriteSpec(table=table)
    engine.write(name, orders(1, 300), spec)
    for turn in range(1, 34):
        clock.wait(34 + turn % 5)
        last = 300 + turn * 12
        rows = orders(last - 11 - turn * 37 % 60, last, turn)
        engine.write(name, gone(*range(turn * 5, turn * 5 + turn % 4 * 9)) if turn % 6 == 4 else rows, spec)
        if turn in (12, 27):
            engine.table(name).compact(full=True)
    engine.table(name).tag("month_end", 14)
    engine.table(name).tag("audit_2026", 30)
    reader = engine.table(name).stream("earliest", consumer_id="dashboard", until=8)
    assert list(reader)
    reader.commit()


def stage(engine: Engine, name: str, rows: pa.Table, *gates: str, stage_name: str = "run") -> Staged:
    """A staged snapshot as dbt makes it."""
    planned = Staged(name, stage_name, "", 0, f"model.shop.{name.partition('.')[2]}", "auto", gates)
    spec = WriteSpec(
        table=TableSpec(primary_key=("order_id",)),
        stage=stage_name,
        commit_user=f"dbt-{name}-{stage_name}",
        commit_identifier=1,
        properties=stage_properties(planned),
    )
    engine.write(name, rows, spec)
    return next(one for one in engine.gate.read_book(name).staged if one.name == stage_name)


def hold_back(engine: Engine, clock: SetClock, name: str = "demo.orders") -> Staged:
    """A staged snapshot of which one test failed, with three failing rows, and one passed."""
    item = stage(engine, name, orders(690, 721, 40), UNIQUE, POSITIVE)
    clock.wait(1)
    failing = pick_failing_rows(
        ("order_id", "customer", "amount", "status"),
        [
            (702, "customer 34", -17.4, "placed"),
            (705, "customer 15", -0.01, "sent"),
            (711, None, -250.0, "returned"),
        ],
    )
    engine.gate.record(item, Outcome(UNIQUE, Verdict.GREEN, (item.as_read,)))
    engine.gate.record(item, Outcome(POSITIVE, Verdict.RED, (item.as_read,), (), failing))
    return item


def build_warehouse(folder: Path, clock: SetClock) -> Engine:
    """demo: orders (held back), a follower with a state, events by day, a view, a damaged table."""
    engine = open_engine(folder, clock)
    build_orders(engine, clock)
    clock.wait(20)
    step = engine.table("demo.orders").plan_changes(None, most=30).step
    assert step is not None
    totals = pa.table({"customer": ["customer 01", "customer 02"], "amount": [120.5, 80.0]})
    positions = {
        engine.table("demo.orders").source: step,
        "kafka:payments": PositionStep(None, '{"0": 1204}'),
        STATE_POSITION: PositionStep(None, "state-7"),
    }
    states = folder / ".tablestore" / "states" / "demo.daily_totals"
    states.mkdir(parents=True)
    (states / "state-7.tar").write_bytes(b"0" * 48_128)
    engine.write(
        "demo.daily_totals",
        totals,
        WriteSpec(table=TableSpec(primary_key=("customer",)), positions=positions),
    )
    for turn in (34, 35):
        clock.wait(31)
        engine.write("demo.orders", orders(680 + turn, 696 + turn, turn), WriteSpec())
    hold_back(engine, clock)
    append = WriteSpec(table=TableSpec(partition_by=("day",)), mode=WriteMode.APPEND)
    for day in ("2026-01-29", "2026-01-30", "2026-01-31"):
        clock.wait(5)
        engine.write("demo.order_events", pa.table({"id": [1, 2, 3], "day": [day] * 3}), append)
    engine.write(
        "demo.customers", pa.table({"id": [1], "name": ["Ann"]}), WriteSpec(table=TableSpec(("id",)))
    )
    engine.create_view("demo.large_orders", "select * from demo.orders where amount > 50")
    engine.write("demo.returns", pa.table({"id": [1]}), WriteSpec(table=TableSpec(("id",))))
    damage(folder, "returns")
    clock.wait(300)
    return engine


def damage(folder: Path, name: str) -> None:
    """The table's first schema is cut short."""
    (folder / "demo.db" / name / "schema" / "schema-0").write_text('{"id": 0,')


def build_hostile(folder: Path, clock: SetClock) -> Engine:
    """Hostile texts wherever the engine takes them: rows, columns, comments, tags, tests, stages, folders."""
    engine = open_engine(folder, clock)
    rows = pa.table(
        {
            "order_id": [1, 2],
            "customer": [HOSTILE, "x" * 900],
            HOSTILE[:60]: ["</script>", "\u2028\x00\x1b[31m"],
        }
    )
    spec = WriteSpec(table=TableSpec(primary_key=("order_id",), comment=HOSTILE))
    engine.write("demo.hostile", rows, spec)
    engine.write("demo.hostile", rows.slice(0, 1).set_column(1, "customer", pa.array([HOSTILE[::-1]])), spec)
    item = stage(engine, "demo.hostile", rows.slice(1, 1), f"test.shop.{HOSTILE.replace('.', '')}.1")
    failing = pick_failing_rows(rows.column_names, [tuple(one.values()) for one in rows.to_pylist()])
    engine.gate.record(item, Outcome(item.gates[0], Verdict.RED, (item.as_read,), (), failing))
    (folder / "<script>alert(1)<" / "x").parent.mkdir(exist_ok=True)
    (folder / "<img src=x onerror=alert(1)>.db" / "t" / "schema").mkdir(parents=True)
    (folder / "demo.db" / "<b>\"'\u202e" / "schema").mkdir(parents=True)
    return engine


def clone_snapshots(folder: Path, database: str, name: str, count: int, clock: SetClock) -> None:
    """Many snapshots at the cost of files: copies of a real one under other numbers, which the next commit follows."""
    snapshots = folder / f"{database}.db" / name / "snapshot"
    real = max(int(path.name.partition("-")[2]) for path in snapshots.glob("snapshot-*"))
    made = decode_snapshot((snapshots / f"snapshot-{real}").read_bytes())
    for number in range(real + 1, real + count + 1):
        clock.ms += 5_000
        properties = dict(made.properties or {}) | {"tablestore.inserted": str(number * 7919 % 50)}
        cloned = replace(
            made,
            id=number,
            time_millis=clock.ms,
            commit_identifier=number,
            properties=properties,
            uuid=f"00000000-0000-4000-8000-{number:012}",
            total_record_count=made.total_record_count + number % 700,
        )
        (snapshots / f"snapshot-{number}").write_bytes(encode_snapshot(cloned))
    (snapshots / "LATEST").write_text(json.dumps(real + count))
