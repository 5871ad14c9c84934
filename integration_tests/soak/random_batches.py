"""Models by changed_keys over inputs that change at random: behind each batch they are their full refresh.

Shapes     orders and customers, rows of which are put, moved to another key and deleted; per customer with orders: a
           join with count, distinct count, median and sum; per order its place among its customer's (a window); per
           customer with or without orders: a left join
Steps      a batch: 1 to 3 commits of an input → `dbt build`, whose equals_full_refresh tests gate each model → the rows
           that went out against what Python computes from dicts
INVARIANT  no batch but a project's first compares all rows: the way by keys is what is tested.
"""

from __future__ import annotations

import random
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from tablestore_demo.dbt_session import DbtSession
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec

BATCHES_OF_A_PROJECT = 100
MODELS = ("totals", "places", "everyone")
_KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}))
_CONFIG = "materialized='incremental', incremental_strategy='changed_keys', affected_limit=1.0"
_TESTED = ", ".join(f"{{name: {name}, data_tests: [equals_full_refresh]}}" for name in MODELS)
_ORDERS, _CUSTOMERS = "{{ source('raw', 'orders') }}", "{{ source('raw', 'customers') }}"
_FILES = {
    "dbt_project.yml": "name: keys\nversion: '1.0'\nprofile: keys\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": """keys:
  target: dev
  outputs:
    dev: {type: tablestore, warehouse: ./warehouse, schema: demo, threads: 2,
          spark: {master: 'local[2]', conf: {spark.sql.shuffle.partitions: '2'}}}
""",
    "models/models.yml": "sources: [{name: raw, schema: demo, tables: [{name: orders}, {name: customers}]}]\n"
    f"models: [{_TESTED}]",
    "models/totals.sql": f"""{{{{ config({_CONFIG}, unique_key='customer', affected_by={{'customers': 'id'}}) }}}}
select o.customer, max(c.name) as name, count(*) as orders, count(distinct o.product) as products,
       percentile(o.amount, 0.5) as median, sum(o.amount) as total
from {_ORDERS} o join {_CUSTOMERS} c on c.id = o.customer
group by o.customer""",
    "models/places.sql": f"""{{{{ config({_CONFIG}, unique_key='id', affected_key='customer') }}}}
select id, customer, amount, row_number() over (partition by customer order by amount desc, id) as place
from {_ORDERS}""",
    "models/everyone.sql": f"""{{{{ config({_CONFIG}, unique_key='id', affected_by={{'orders': 'customer'}}) }}}}
select c.id, any_value(c.name) as name, count(o.id) as orders, max(o.amount) as largest
from {_CUSTOMERS} c left join {_ORDERS} o on o.customer = c.id
group by c.id""",
}  # fmt: skip
Order = tuple[int, int, int, float]  # id, customer, product, amount


class _Inputs:
    """What was put and not taken away again."""

    def __init__(self, engine: Engine, rng: random.Random) -> None:
        self._engine, self._rng = engine, rng
        self.orders: dict[int, Order] = {}
        self.customers: dict[int, str] = {}

    def fill(self) -> None:
        """Before the first run."""
        self._put_customers(*range(1, 13))
        self._put_orders([self._order(number) for number in range(1, 60)])

    def change(self) -> None:
        """One to three commits, of either."""
        rng = self._rng
        for _ in range(rng.randint(1, 3)):
            roll = rng.random()
            if roll < 0.55:
                self._put_orders([self._order(one) for one in rng.sample(range(1, 90), rng.randint(1, 6))])
            elif roll < 0.7:
                gone = rng.sample(range(1, 90), rng.randint(1, 8))
                self._delete("orders", gone)
                self.orders = {key: row for key, row in self.orders.items() if key not in gone}
            elif roll < 0.85:
                self._put_customers(*rng.sample(range(1, 16), rng.randint(1, 3)))
            else:
                self._delete("customers", [one := rng.randint(1, 15)])
                self.customers.pop(one, None)

    def _order(self, number: int) -> Order:
        rng = self._rng
        return number, rng.randint(1, 15), rng.randint(0, 3), rng.randint(0, 40) / 2

    def _put_orders(self, rows: list[Order]) -> None:
        names = ("id", "customer", "product", "amount")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        self._engine.write("demo.orders", pa.table(columns), _KEYED)
        self.orders.update({row[0]: row for row in rows})

    def _put_customers(self, *ids: int) -> None:
        named = {one: f"c{self._rng.randrange(1000)}" for one in ids}
        self._engine.write(
            "demo.customers", pa.table({"id": list(named), "name": list(named.values())}), _KEYED
        )
        self.customers.update(named)

    def _delete(self, table: str, ids: list[int]) -> None:
        rest: dict[str, Any] = {
            "orders": {"customer": [0] * len(ids), "product": [0] * len(ids), "amount": [0.0] * len(ids)},
            "customers": {"name": [""] * len(ids)},
        }
        self._engine.write(
            f"demo.{table}", pa.table({"id": ids, **rest[table]}), WriteSpec(delete_when="true")
        )


def random_batches(seed: int, count: int, folder: Path) -> dict[str, int]:
    """Raises AssertionError at the first difference."""
    counts: Counter[str] = Counter(batches=count)
    for first in range(0, count, BATCHES_OF_A_PROJECT):
        place = folder / str(first)
        for name, text in _FILES.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        with Engine(str(place / "warehouse"), spark=SparkSettings("local[2]")) as engine:
            _play(
                engine, f"{seed}/{first}", min(BATCHES_OF_A_PROJECT, count - first), DbtSession(place), counts
            )
        print(f"batches: {min(first + BATCHES_OF_A_PROJECT, count)} so far", flush=True)
    return dict(counts)


def _play(engine: Engine, seed: str, batches: int, dbt: DbtSession, counts: Counter[str]) -> None:
    """One project."""
    inputs = _Inputs(engine, random.Random(seed))
    inputs.fill()
    assert dbt.invoke("build").success
    for number in range(batches):
        inputs.change()
        result = dbt.invoke("build")
        where = f"seed {seed}, batch {number}"
        assert result.success, (where, [(node.name, node.message) for node in result.nodes], result.error)
        counts["models tested against their full refresh"] += len(MODELS)
        counts["rows written"] += sum(
            node.facts.get("rows_affected") or 0 for node in result.nodes if node.name in MODELS
        )
        for model, expected in _expected(inputs).items():
            table = engine.table(f"demo.{model}").scan().to_arrow()
            found = sorted(tuple(row.values()) for row in table.to_pylist())
            assert found == sorted(expected), (where, model)
            counts["rows compared"] += len(expected)


def _expected(inputs: _Inputs) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of each model, from dicts."""
    orders_of: dict[int, list[Order]] = {}
    for order in inputs.orders.values():
        orders_of.setdefault(order[1], []).append(order)
    totals, places = [], []
    for customer, orders in orders_of.items():
        amounts = [one[3] for one in orders]
        if customer in inputs.customers:
            products = len({one[2] for one in orders})
            middle = statistics.median(amounts)
            name = inputs.customers[customer]
            totals.append((customer, name, len(orders), products, middle, sum(amounts)))
        for place, one in enumerate(sorted(orders, key=lambda one: (-one[3], one[0])), 1):
            places.append((one[0], customer, one[3], place))
    everyone = [
        (one, name, len(found := orders_of.get(one, [])), max((row[3] for row in found), default=None))
        for one, name in inputs.customers.items()
    ]
    return {"totals": totals, "places": places, "everyone": everyone}
