"""A dbt project of the usual shapes, fed at random and built with four threads, round after round, against dicts.

Shapes     view on a source · keyed incremental with deletes and tests · keyless append · insert_overwrite by day ·
           delete+insert · table over a tested model · dbt snapshot
Steps      1 feed a random batch (sometimes with a row that turns a test red)  2 build, or run and test, or a full
           refresh; sometimes killed first  3 every table against the dict: red ones must show what they showed before
INVARIANT  expectations come from the fed events alone.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import TableSpec, WriteMode, WriteSpec

Event = dict[str, Any]
EVENTS = pa.schema(
    [("event_id", pa.int64()), ("order_id", pa.int64()), ("customer", pa.string()), ("day", pa.string()),
     ("amount", pa.int64()), ("op", pa.string()), ("batch", pa.int32())]
)  # fmt: skip
_LATEST = """
select * except (rn) from (
  select *, row_number() over (partition by order_id order by event_id desc) as rn from {{ ref('stg_events') }}
  {% if is_incremental() %} where batch > (select coalesce(max(batch), -1) from {{ this }}) {% endif %}
) where rn = 1"""
FILES: Mapping[str, str] = {
    "dbt_project.yml": "name: soak\nprofile: shop\nversion: '1.0'\nflags: {send_anonymous_usage_stats: false}\n",
    "models/sources.yml": "sources: [{name: raw, schema: raw, tables: [{name: events}]}]\n",
    "models/stg_events.sql": "{{ config(materialized='view') }} select * from {{ source('raw', 'events') }}",
    "models/orders.sql": "{{ config(materialized='tablestore', primary_key='order_id', sequence_field='event_id',"
    " delete_when=\"op = 'd'\") }}" + _LATEST,
    "models/orders_log.sql": "{{ config(materialized='incremental', incremental_strategy='append') }}"
    " select event_id, order_id, batch from {{ ref('stg_events') }}"
    " {% if is_incremental() %} where batch > (select coalesce(max(batch), -1) from {{ this }}) {% endif %}",
    "models/by_day.sql": "{{ config(materialized='incremental', incremental_strategy='insert_overwrite',"
    " partition_by='day') }} select day, count(*) as n, sum(amount) as total from {{ ref('stg_events') }}"
    " {% if is_incremental() %} where day in (select day from {{ ref('stg_events') }}"
    " where batch = (select max(batch) from {{ ref('stg_events') }})) {% endif %} group by day",
    "models/latest.sql": "{{ config(materialized='incremental', incremental_strategy='delete+insert',"
    " unique_key='order_id') }}" + _LATEST,
    "models/daily.sql": "{{ config(materialized='table') }} select day, count(*) as n, sum(amount) as total"
    " from {{ ref('orders') }} group by day",
    "models/schema.yml": "models: [{name: orders, columns: [{name: order_id, data_tests: [unique, not_null]}]},"
    " {name: orders_log, columns: [{name: event_id, data_tests: [unique]}]}]\n",
    "tests/no_negative_amount.sql": "select * from {{ ref('orders') }} where amount < 0",
    "snapshots/days.sql": "{% snapshot days %}{{ config(unique_key='day', strategy='check', check_cols='all') }}"
    " select day, count(*) as n from {{ ref('stg_events') }} group by day{% endsnapshot %}",
}  # fmt: skip
_MODELS = ("orders", "orders_log", "by_day", "latest", "daily")


@dataclass
class Rounds:
    """`events` were fed; `shown` is what orders and daily show, which a red round does not move."""

    shop: Shop
    chance: random.Random
    events: list[Event] = field(default_factory=list)
    seen_days: list[dict[str, int]] = field(default_factory=list)
    shown: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)

    def play(self, number: int) -> str:
        """One round; what it was. Raises AssertionError when a table is not what the dicts say."""
        red = number > 0 and self.chance.random() < 0.25
        self._feed(number, red=red)
        words = self._words(number)
        killed = number > 0 and self.chance.random() < 0.2
        if killed:
            self._kill(words)
        if words == ["run"]:
            self.shop.dbt("snapshot")
            self.shop.dbt("run")
            self.shop.dbt("test", ok=not red)
        else:
            self.shop.dbt(*words, ok=not red)
        self._compare(f"round {number} ({words}, {red=}, {killed=})", red=red and words != ["run"])
        if red:
            self._mend(number)
        return f"{' '.join(words)}{' red' if red else ''}{' killed' if killed else ''}"

    def _words(self, number: int) -> list[str]:
        draw = self.chance.random()
        if number and draw < 0.15:
            return ["build", "--full-refresh"]
        return ["run"] if draw < 0.3 else ["build"]

    def _feed(self, number: int, *, red: bool) -> None:
        count = self.chance.choice((1, 5, 40))
        batch = [self._event(number) for _ in range(count)]
        if red:
            batch.append({**self._event(number), "amount": -1, "op": "u"})
        self._write(batch)

    def _mend(self, number: int) -> None:
        """A later event for every order that is negative, and a build that must be green."""
        bad = [one for one in self._latest().values() if one["amount"] < 0]
        self._write([{**self._event(number), "order_id": one["order_id"], "op": "u"} for one in bad])
        self.shop.dbt("build")
        self._compare(f"after round {number}", red=False)

    def _event(self, batch: int) -> Event:
        chance = self.chance
        return {"event_id": 0, "order_id": chance.randrange(30), "customer": chance.choice("abc"),
                "day": f"2026-01-0{chance.randint(1, 6)}", "amount": chance.randrange(1000),
                "op": "d" if chance.random() < 0.2 else "u", "batch": batch}  # fmt: skip

    def _write(self, batch: list[Event]) -> None:
        number = 1 + max((one["batch"] for one in self.events), default=-1)
        for one in batch:
            one.update(event_id=len(self.events), batch=number)
            self.events.append(one)
        rows = pa.Table.from_pylist(batch, schema=EVENTS)
        spec = WriteSpec(table=TableSpec(), mode=WriteMode.APPEND)
        self.shop.engine.write("raw.events", rows, spec)

    def _kill(self, words: list[str]) -> None:
        """The command in a process of its own, killed somewhere in the middle."""
        place = ["--project-dir", str(self.shop.folder), "--profiles-dir", str(self.shop.folder)]
        command = [sys.executable, "-m", "dbt.cli.main", "--quiet", *words, *place]
        process = subprocess.Popen(
            command,
            cwd=self.shop.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ},
        )
        log = self.shop.folder / "warehouse" / "demo.db"
        before = _newest(log)
        until = time.monotonic() + 120
        while _newest(log) == before and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)  # its first commit: from here on there is something to break
        time.sleep(self.chance.uniform(0, 3))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)

    # ---- what must be there ------------------------------------------------------------------------------

    def _compare(self, where: str, *, red: bool) -> None:
        expected = self._expected()
        if red:
            expected |= {name: self.shown[name] for name in ("orders", "daily")}
        for name in _MODELS:
            table = self.shop.engine.table(f"demo.{name}")
            columns = _COLUMNS[name]
            rows = table.scan(columns=columns).to_arrow().select(columns).to_pylist()
            got = sorted(tuple(row.values()) for row in rows)
            assert got == expected[name], (
                f"{where}: {name} shows {got[:5]} …, expected {expected[name][:5]} …"
            )
            assert table.verify() == (), f"{where}: {name}"
        self.shown = {name: expected[name] for name in ("orders", "daily")}
        self._compare_snapshot(where)

    def _compare_snapshot(self, where: str) -> None:
        """Each day's newest version is what the events say; versions of a day never repeat."""
        table = self.shop.engine.table("demo.days")
        rows = table.scan(columns=["day", "n", "dbt_valid_to"]).to_arrow().to_pylist()
        now = {one["day"]: one["n"] for one in rows if one["dbt_valid_to"] is None}
        days = [one["day"] for one in self.events]
        assert now == {day: days.count(day) for day in days}, where
        versions = [(one["day"], one["n"]) for one in rows]
        assert len(versions) == len(set(versions)), where

    def _latest(self) -> dict[int, Event]:
        return {one["order_id"]: one for one in self.events}

    def _expected(self) -> dict[str, list[tuple[Any, ...]]]:
        latest = self._latest()
        live = [one for one in latest.values() if one["op"] != "d"]
        return {
            "orders": sorted((one["order_id"], one["event_id"], one["amount"]) for one in live),
            "orders_log": sorted((one["event_id"], one["order_id"]) for one in self.events),
            "by_day": _by_day(self.events),
            "latest": sorted((one["order_id"], one["event_id"], one["op"]) for one in latest.values()),
            "daily": _by_day(live),
        }


_COLUMNS = {
    "orders": ["order_id", "event_id", "amount"],
    "orders_log": ["event_id", "order_id"],
    "by_day": ["day", "n", "total"],
    "latest": ["order_id", "event_id", "op"],
    "daily": ["day", "n", "total"],
}


def _by_day(events: list[Event]) -> list[tuple[Any, ...]]:
    days = sorted({one["day"] for one in events})
    amounts = {day: [one["amount"] for one in events if one["day"] == day] for day in days}
    return [(day, len(found), sum(found)) for day, found in amounts.items()]


def _newest(folder: Path) -> set[str]:
    """Snapshot files of all tables."""
    return {str(path) for path in folder.glob("*/snapshot/snapshot-*")}


def play_rounds(seed: int, rounds: int, folder: Path) -> dict[str, int]:
    """A new project in `folder`; what kinds of rounds there were."""
    shop = Shop(folder)
    for name in ("models", "seeds", "macros"):
        for path in sorted((folder / name).rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
    shop.output["threads"] = 4
    for name, text in FILES.items():
        shop.write(name, text)
    game, kinds = Rounds(shop, random.Random(seed)), dict[str, int]()
    for number in range(rounds):
        try:
            kind = game.play(number)
        except AssertionError as wrong:
            raise AssertionError(f"seed {seed}: {wrong}") from wrong
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds
