"""`changed_keys` models after few changed rows, beside their full refresh: what a run costs, by model and by rows.

Models     star      three tables, an average, a ratio and an extreme, 140 groups with state
           total     one group, two averages, with state
           groups    an average for each customer, 40 rows a group, with state
           sums      count and sum for each customer: rows follow from stored ones
           medians   a median for each customer: affected keys
Steps      1 tables, the first builds 2 in turn: so many orders change, a run, a full refresh in another schema
Measure    processor seconds of a node, Python and the JVM, and seconds as dbt reports them; medians without the
           first round of a count, which compiles; one JVM for all
INVARIANT  behind each run both schemas have the same rows, or the figures are void.
Usage      python -m benchmarks.few_changes --rows 2000000 20000000 --changed 100 0.001 0.01 --rounds 6
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from dbt.cli.main import dbtRunner

from integration_tests.pipelines.choices import ProcessorTimes
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteMode, WriteSpec

ROWS_OF_A_CUSTOMER, PRODUCTS = 40, 1_000
SOURCE = "{{ source('raw', '%s') }}"
ORDERS, GOODS, PEOPLE = (SOURCE % one for one in ("orders", "products", "people"))
QUERIES = {
    "star": (
        "name",
        (
            "select p.name, avg(o.amount) as mean, "
            "100 * sum(case when c.region = 1 then o.amount end) / sum(o.amount) as share, "
            f"max(o.day) as last from {ORDERS} o join {GOODS} p on p.id = o.product join {PEOPLE} c on "
            "c.id = o.customer group by p.name"
        ),
    ),
    "total": ("one", f"select 1 as one, avg(amount) as mean, avg(day) as middle, count(*) as n from {ORDERS}"),
    "groups": ("customer", f"select customer, avg(amount) as mean, max(day) as last from {ORDERS} group by customer"),
    "sums": ("customer", f"select customer, count(*) as n, sum(amount) as total from {ORDERS} group by customer"),
    "medians": ("customer", f"select customer, percentile(amount, 0.5) as mid from {ORDERS} group by customer"),
}  # fmt: skip
FILES = {
    "dbt_project.yml": "name: few\nversion: '1.0'\nprofile: few\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": """few:
  target: demo
  outputs:
    demo: {type: tablestore, warehouse: ./warehouse, schema: demo, threads: 1, spark: {master: 'local[2]'}}
    full: {type: tablestore, warehouse: ./warehouse, schema: full, threads: 1, spark: {master: 'local[2]'}}
""",
    "models/sources.yml": "sources: [{name: raw, schema: demo, tables: "
    "[{name: orders}, {name: products}, {name: people}]}]",
}
HEAD = "{{{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='{key}', "
HEAD += "changed_keys={{'strategy': var('strategy', 'cheapest')}}) }}}}\n{query}"


def _orders(ids: np.ndarray, rows: int, version: int) -> pa.Table:
    return pa.table(
        {
            "id": ids,
            "customer": ids % (rows // ROWS_OF_A_CUSTOMER),
            "product": ids * 7 % PRODUCTS,
            "day": (ids * 13 % 2_500 + version).astype("int32"),
            "amount": pa.array(ids * 31 % 100_000 + version).cast(pa.decimal128(19)).cast(pa.decimal128(12)),
        }
    )


class Bench:
    """Of one number of rows."""

    def __init__(self, folder: Path, rows: int, models: Sequence[str], strategy: str) -> None:
        self.folder, self.rows, self.models, self.strategy = folder, rows, models, strategy
        self.version = 0
        texts = FILES | {
            f"models/{name}.sql": HEAD.format(key=QUERIES[name][0], query=QUERIES[name][1]) for name in models
        }
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def fill(self, engine: Engine) -> None:
        """The tables, and the models' first builds in both schemas."""
        spec = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}), mode=WriteMode.UPSERT)
        customers, goods = np.arange(self.rows // ROWS_OF_A_CUSTOMER), np.arange(PRODUCTS)
        engine.write("demo.people", pa.table({"id": customers, "region": customers % 5}), spec)
        names = pa.array([f"kind {one % 140}" for one in goods])
        engine.write("demo.products", pa.table({"id": goods, "name": names}), spec)
        engine.write("demo.orders", _orders(np.arange(self.rows), self.rows, 0), spec)
        for target in ("demo", "full"):
            self.run(engine, target)

    def change(self, engine: Engine, count: int) -> None:
        """So many orders, spread evenly."""
        self.version += 1
        step = self.rows // count
        ids = np.arange(count) * step + self.version % step
        engine.write("demo.orders", _orders(ids, self.rows, self.version), WriteSpec(mode=WriteMode.UPSERT))

    def run(self, engine: Engine, target: str, *more: str) -> dict[str, tuple[float, float, str]]:
        """model → processor seconds, seconds, how it was evaluated."""
        times, place = ProcessorTimes(engine), str(self.folder)
        done = dbtRunner(callbacks=[times]).invoke([
            "--quiet", "--log-level-file", "none", "run", *more, "--project-dir", place, "--profiles-dir", place,
            "--target", target, "--target-path", f"{place}/target-{target}",
            "--vars", json.dumps({"strategy": self.strategy}),
        ])  # fmt: skip
        results = json.loads((self.folder / f"target-{target}/run_results.json").read_text())["results"]
        if not done.success:
            raise SystemExit(f"few_changes: {[one['message'] for one in results]}")
        found = {}
        for one in results:
            name = one["unique_id"].rpartition(".")[2]
            how = str(one["adapter_response"].get("evaluated", ""))
            found[name] = (times.taken[name], one["execution_time"], how)
        return found

    def check(self, engine: Engine) -> None:
        """Both schemas have the same rows."""
        for name in self.models:
            for one, other in (("demo", "full"), ("full", "demo")):
                sql = f"select count(*) from (select * from {one}.{name} except select * from {other}.{name})"
                if engine.sql(sql).rows[0][0] != 0:
                    raise SystemExit(f"few_changes: {name}: other rows than its full refresh: void")


def measure(bench: Bench, engine: Engine, count: int, rounds: int) -> None:
    """Prints medians of processor seconds and seconds of each model, of runs and of full refreshes."""
    kept: dict[str, list[tuple[float, ...]]] = {name: [] for name in bench.models}
    ways: dict[str, list[str]] = {name: [] for name in bench.models}
    for number in range(rounds + 1):
        bench.change(engine, count)
        few = bench.run(engine, "demo")
        full = bench.run(engine, "full", "--full-refresh")
        bench.check(engine)
        for name in bench.models if number else ():
            kept[name].append((*few[name][:2], *full[name][:2]))
            ways[name].append(few[name][2])
    names = ("processor", "seconds", "full processor", "full seconds")
    for model, taken in kept.items():
        medians = [round(statistics.median(one), 3) for one in zip(*taken, strict=True)]
        found = dict(zip(names, medians, strict=True)) | {"ways": ways[model]}
        print(json.dumps({"rows": bench.rows, "changed": count, "model": model, **found}), flush=True)


def main(arguments: list[str]) -> None:
    """Medians by rows, changed rows and model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.few_changes")
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000])
    parser.add_argument(
        "--changed", type=float, nargs="+", default=[100], help="rows; below 1 a share of them"
    )
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--models", nargs="+", choices=list(QUERIES), default=list(QUERIES))
    parser.add_argument("--strategy", default="cheapest", help="of the models' config")
    parser.add_argument("--folder", default=None, help="where warehouses are made")
    asked = parser.parse_args(arguments)
    for rows in asked.rows:
        folder = Path(tempfile.mkdtemp(prefix="few-changes-", dir=asked.folder))
        bench = Bench(folder, rows, asked.models, asked.strategy)
        with Engine(str(folder / "warehouse"), spark=SparkSettings("local[2]")) as engine:
            bench.fill(engine)
            for one in asked.changed:
                count = int(one if one >= 1 else one * rows)
                measure(bench, engine, count, asked.rounds)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
