"""A changed_keys model after 1 % of its keys changed, beside its full refresh in the same run.

Steps      1 the input, the first run 2 in turn: one row of each hundredth customer changes, a run; a full refresh
Measure    the time of the node as dbt tells it (run_results.json): reading, computing, committing; one JVM for all
INVARIANT  behind each run the table has the rows and sums of the query, or the figures are void.
Usage      python -m benchmarks.changed_keys [rows] [folder]
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from dbt.cli.main import dbtRunner

from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteMode, WriteSpec

ROUNDS, ROWS_OF_A_CUSTOMER = 5, 40
QUERY = (
    "select customer, count(*) as orders, sum(amount) as total, percentile(amount, 0.5) as median, "
    "count(distinct city) as cities from {table} group by customer"
)
FILES = {
    "dbt_project.yml": "name: keys\nversion: '1.0'\nprofile: keys\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": """keys:
  target: dev
  outputs:
    dev: {type: tablestore, warehouse: ./warehouse, schema: demo, spark: {master: 'local[2]'}}
""",
    "models/sources.yml": "sources: [{name: raw, schema: demo, tables: [{name: orders}]}]",
    "models/totals.sql": "{{ config(materialized='incremental', incremental_strategy='changed_keys', "
    "unique_key='customer') }}\n" + QUERY.replace("{table}", "{{ source('raw', 'orders') }}"),
}


class SheetLike(Protocol):
    """Where figures go."""

    seconds: dict[str, list[float]]
    facts: dict[str, object]


def measure_changed_keys(sheet: SheetLike, folder: Path, rows: int) -> None:
    """Figures under `changed_keys: …`."""
    project = folder / "changed_keys"
    for name, text in FILES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    with Engine(str(project / "warehouse"), spark=SparkSettings("local[2]")) as engine:
        spec = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}), mode=WriteMode.UPSERT)
        engine.write("demo.orders", _orders(np.arange(rows), rows, 0), spec)
        _run(project)
        for number in range(1, ROUNDS + 1):
            customers = rows // ROWS_OF_A_CUSTOMER
            changed = np.arange(number % 100, customers, 100)  # the first row of each hundredth customer
            engine.write("demo.orders", _orders(changed, rows, number), spec)
            for name, more in (("1 % of keys", ()), ("full refresh", ("--full-refresh",))):
                took, affected = _run(project, *more)
                print(f"  changed_keys: {name:<30} {took:8.3f} s, {affected} rows changed", flush=True)
                sheet.seconds.setdefault(f"changed_keys: {name}", []).append(took)
                if name == "1 % of keys" and affected != len(changed):
                    raise SystemExit(f"changed_keys: {affected} rows changed, not {len(changed)}: void")
                _check(engine)
    sheet.facts["changed_keys"] = {"rows": rows, "keys": rows // ROWS_OF_A_CUSTOMER}


def _orders(ids: np.ndarray, rows: int, version: int) -> pa.Table:
    customers = rows // ROWS_OF_A_CUSTOMER
    return pa.table(
        {
            "id": ids,
            "customer": ids % customers,
            "city": pa.array([f"city {one}" for one in (ids // 7 % 50)]),
            "amount": (ids * 31 % 1000 + version).astype("float64"),
        }
    )


def _run(project: Path, *more: str) -> tuple[float, int]:
    """Seconds of the node, rows that changed."""
    place = ["--project-dir", str(project), "--profiles-dir", str(project)]
    done = dbtRunner().invoke(["--quiet", "run", *more, *place])
    (result,) = json.loads((project / "target/run_results.json").read_text())["results"]
    if not done.success:
        raise SystemExit(f"changed_keys: {result['message']}")
    return result["execution_time"], result["adapter_response"].get("rows_affected", 0)


def _check(engine: Engine) -> None:
    sums = "count(*), sum(customer), sum(orders), sum(total), sum(median), sum(cities)"
    found = engine.sql(f"select {sums} from demo.totals").rows
    expected = engine.sql(f"select {sums} from ({QUERY.format(table='demo.orders')})").rows
    if [tuple(row) for row in found] != [tuple(row) for row in expected]:
        raise SystemExit(f"changed_keys: {found}, the query gives {expected}: the measurement is void")


class _Alone:
    """A sheet of this benchmark alone."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        self.facts: dict[str, object] = {}


def main(arguments: list[str]) -> None:
    """Medians, and their ratio."""
    rows = int(arguments[0]) if arguments else 2_000_000
    folder = Path(arguments[1] if len(arguments) > 1 else tempfile.mkdtemp(prefix="changed-keys-"))
    sheet = _Alone()
    measure_changed_keys(sheet, folder, rows)
    medians = {name: sorted(values)[len(values) // 2] for name, values in sheet.seconds.items()}
    few, full = medians["changed_keys: 1 % of keys"], medians["changed_keys: full refresh"]
    print(json.dumps({**medians, "ratio": round(few / full, 3), **sheet.facts}, indent=1))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
