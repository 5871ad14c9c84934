"""What a user waits for: `dbt build` of two small models with three tests, each build a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

T = TypeVar("T")
BUILDS = 4
_FILES = {
    "dbt_project.yml": """
name: bench
version: "1.0.0"
profile: bench
flags: {send_anonymous_usage_stats: false}
""",
    "profiles.yml": """
bench:
  target: dev
  outputs:
    dev: {type: tablestore, warehouse: warehouse, schema: bench}
""",
    "models/orders.sql": """
{{ config(materialized='tablestore', primary_key='id') }}
select id, id % 100 as customer, cast(id * 1.5 as decimal(10, 2)) as amount, '{{ invocation_id }}' as run
from range(10000)
""",
    "models/customers.sql": """
{{ config(materialized='tablestore', primary_key='customer') }}
select customer, count(*) as orders, sum(amount) as amount from {{ ref('orders') }} group by customer
""",
    "models/schema.yml": """
models:
  - name: orders
    columns: [{name: id, data_tests: [unique, not_null]}]
  - name: customers
    columns: [{name: customer, data_tests: [unique]}]
""",
}


class SheetLike(Protocol):
    """Where figures go."""

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Run and note."""


def measure_dbt_build(sheet: SheetLike, folder: Path) -> None:
    """`dbt build: first` and `dbt build: again` in the sheet."""
    project = folder / "dbt"
    for name, text in _FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for number in range(BUILDS):
        sheet.time("dbt build: again" if number else "dbt build: first", lambda: _build(project))
        rows = _rows_written(project)
        expected = {
            "orders": (0, 10_000) if number else (10_000, 0),
            "customers": (0, 100) if number else (100, 0),
        }
        if rows != expected:
            raise SystemExit(f"dbt build {number}: expected {expected}, got {rows}: the measurement is void")


def _build(project: Path) -> None:
    command = [str(Path(sys.executable).with_name("dbt")), "build", "--profiles-dir", "."]
    done = subprocess.run(
        command, cwd=project, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"dbt build failed:\\n{done.stdout}\\n{done.stderr}")


def _rows_written(project: Path) -> dict[str, tuple[int, int]]:
    """(inserted, updated) of each model, as run_results.json has them."""
    results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    models = [one for one in results if one["unique_id"].startswith("model.")]
    return {
        one["unique_id"].rpartition(".")[2]: (
            one["adapter_response"]["rows_inserted"],
            one["adapter_response"]["rows_updated"],
        )
        for one in models
    }
