"""The project that the pages of docs/ talk about: orders from a source of events, with a log. README has its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec

ROOT = Path(__file__).parents[2]
WRITTEN_ADDRESS = "localhost:9092"
STAGED = "orders_try"
_TABLES = {"shop.order_events", "demo.orders", "demo.events"}
_START = datetime(2026, 1, 1, tzinfo=UTC)
_PROJECT = """name: shop
version: "1.0.0"
profile: shop
flags: {send_anonymous_usage_stats: false}
"""
_CHANGES = """{"before":null,"after":{"id":1,"name":"ann"},"op":"c"}
{"before":{"id":1,"name":"ann"},"after":{"id":1,"name":"anne"},"op":"u"}
"""
_ORDERS = """{{ config(
    materialized='tablestore',
    primary_key=['order_id'],
    sequence_field='updated_at',
    delete_when="op = 'd'",
    log_system='kafka',
    log_consistency='transactional',
    kafka_topic='orders'
) }}
select * from {{ source('shop', 'order_events') }}
{% if is_incremental() %} where loaded_at > (select max(loaded_at) from {{ this }}) {% endif %}
"""
_PROFILE = f"""shop:
  target: dev
  outputs:
    dev:
      type: tablestore
      warehouse: ./warehouse
      schema: demo
      log: {{kafka.bootstrap.servers: "{WRITTEN_ADDRESS}"}}
"""
_SOURCES = """sources:
  - name: shop
    tables: [{name: order_events}]
models:
  - name: orders
    columns:
      - {name: order_id, data_tests: [unique, not_null]}
"""


@dataclass(frozen=True)
class Project:
    """One project on disk and the broker that it publishes to."""

    folder: Path
    broker_url: str
    files: frozenset[str] = frozenset()  # its models at first, as `models/orders.sql`

    @property
    def engine(self) -> Engine:
        """The warehouse from Python."""
        return Engine(str(self.folder / "warehouse"), log={"kafka.bootstrap.servers": self.broker_url})

    def run(self, words: Sequence[str], *, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """A command as typed in the project folder; the page's broker is the one of the test."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [self.localized(word) for word in words],
            cwd=self.folder,
            env={**os.environ, "PATH": path, "TABLESTORE_KAFKA": self.broker_url},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def localized(self, text: str) -> str:
        """The text with this test's broker."""
        return text.replace(WRITTEN_ADDRESS, self.broker_url)

    def put(self, name: str, text: str) -> None:
        """A file of the project, as a page has it; a page's `dbt_project.yml` has a part of the project's."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((_PROJECT if name == "dbt_project.yml" else "") + self.localized(text))

    def forget_pages(self) -> None:
        """Models and tables that another page brought go; pages run in any order."""
        for path in [*(self.folder / "models").rglob("*.*"), *(self.folder / "functions").rglob("*.*")]:
            if path.relative_to(self.folder).as_posix() not in self.files:
                path.unlink()
        self.put("dbt_project.yml", "")
        for database in self.engine.databases():
            for one in self.engine.relations(database):
                if one.kind == "table" and str(one.identifier) not in _TABLES:
                    self.engine.drop_table(str(one.identifier))

    def stage(self) -> None:
        """A staged snapshot on the newest one, for the commands about staging."""
        table = self.engine.table("demo.orders")
        table.write(_orders(table.schema.arrow_schema(), 900), WriteSpec(stage=STAGED, publish=False))


def leftovers(folder: Path) -> list[Path]:
    """What Spark's catalogs leave in a folder where it runs."""
    of_spark = {"spark-warehouse", "metastore_db", "derby.log"}
    return [path for path in folder.rglob("*") if path.name in of_spark]


def fill_project(project: Project) -> Project:
    """Source rows by the Python API, the first snapshot by `dbt build` in a session that stays, six more by the Python
    API.
    """
    folder = project.folder
    project.put("models/orders.sql", _ORDERS)
    project.put("profiles.yml", _PROFILE)
    project.put("dbt_project.yml", "")
    (folder / "changes.jsonl").write_text(_CHANGES)
    (folder / "models" / "sources.yml").write_text(_SOURCES)
    append = WriteSpec(table=TableSpec(), mode=WriteMode.APPEND)
    for first in (1, 4):
        project.engine.write("shop.order_events", _events(first), append)
    for command in (["tablestore", "session", "start"], ["dbt", "build"]):
        done = project.run(command)
        assert done.returncode == 0, done.stdout + done.stderr
    table = project.engine.table("demo.orders")
    while (table.latest_snapshot_id() or 0) < 7:
        number = table.latest_snapshot_id() or 0
        table.write(_orders(table.schema.arrow_schema(), number))
    kept = {"partition.expiration-time": "36500 d"}
    in_parts = TableSpec(primary_key=("dt", "region", "id"), partition_by=("dt", "region"), options=kept)
    for number in range(3):
        rows = pa.table({"dt": ["2026-01-31"] * 2, "region": ["eu", "us"], "id": [number, number]})
        project.engine.write("demo.events", rows, WriteSpec(table=in_parts))
    models = (folder / "models").rglob("*.*")
    return replace(project, files=frozenset(path.relative_to(folder).as_posix() for path in models))


def _events(first: int) -> pa.Table:
    moments = [_START + timedelta(minutes=first + n) for n in range(3)]
    return pa.table(
        {
            "op": ["c"] * 3,
            "order_id": [first + n for n in range(3)],
            "customer": ["ann", "bob", "cy"],
            "amount": [1.5, 2.5, 3.5],
            "updated_at": pa.array(moments, pa.timestamp("us", "UTC")),
            "loaded_at": pa.array(moments, pa.timestamp("us", "UTC")),
        }
    )


def _orders(schema: pa.Schema, number: int) -> pa.Table:
    """Order 1 with a new amount, and a new order."""
    moment = _START + timedelta(days=1, minutes=number)
    rows = pa.table(
        {
            "op": ["u", "c"],
            "order_id": [1, 100 + number],
            "customer": ["ann", "dee"],
            "amount": [1.5 + number, 9.0],
            "updated_at": pa.array([moment] * 2, pa.timestamp("us", "UTC")),
            "loaded_at": pa.array([moment] * 2, pa.timestamp("us", "UTC")),
        }
    )
    return rows.select(schema.names).cast(pa.schema([field.with_nullable(True) for field in schema]))
