"""The first load, then batches: new orders (RF1), deleted orders (RF2), changed customers, parts and suppliers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from integration_tests.pipelines.feed import Change, Put, Remove
from integration_tests.pipelines.tpch import rows

KEYS: Mapping[str, tuple[str, ...]] = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}


class TpchFeed:
    """`share`: of orders that come and go in a batch, and of customers, parts and suppliers that change."""

    keys = KEYS
    project = Path(__file__).parent / "project"

    def __init__(self, scale: float, seed: int, share: float) -> None:
        self.sizes = rows.Sizes.of(scale)
        self._share, self._rng = share, np.random.default_rng([seed, 1])
        self._orders = np.empty(0, np.int64)  # keys of the orders that are there
        self._lines = np.empty(0, np.int64)  # of each, its line items
        self._new = 0
        fraction = min(0.0001 / scale, 0.01)
        # a factor below 1 has hardly an order of more than 300 pieces
        self.variables = {
            "q11_fraction": f"{fraction:.10f}",
            "q18_quantity": "300" if scale >= 0.5 else "230",
        }

    def first(self) -> Iterator[Change]:
        """All eight tables."""
        rng, sizes = self._rng, self.sizes
        yield Put("region", rows.regions())
        yield Put("nation", rows.nations())
        yield Put("supplier", rows.suppliers(rng, _keys(sizes.suppliers)))
        yield Put("customer", rows.customers(rng, _keys(sizes.customers)))
        yield Put("part", rows.parts(rng, _keys(sizes.parts)))
        yield Put("partsupp", rows.part_suppliers(rng, _keys(sizes.parts), sizes))
        yield from self._put_orders(rows.order_keys(np.arange(sizes.orders), new=False))

    def batch(self, number: int) -> Iterator[Change]:
        """RF1, RF2 and the updates, in turn."""
        count = self._some(self.sizes.orders)
        yield from self._put_orders(rows.order_keys(np.arange(self._new, self._new + count), new=True))
        self._new += count
        yield from self._remove_orders(count)
        rng, sizes = self._rng, self.sizes
        yield Put("customer", rows.customers(rng, self._picked(sizes.customers)))
        changed = self._picked(sizes.parts)
        yield Put("part", rows.parts(rng, changed))
        yield Put("partsupp", rows.part_suppliers(rng, changed, sizes))
        yield Put("supplier", rows.suppliers(rng, self._picked(sizes.suppliers)))

    def _some(self, count: int) -> int:
        return max(round(count * self._share), 1)

    def _picked(self, count: int) -> np.ndarray:
        return np.sort(self._rng.choice(count, self._some(count), replace=False)) + 1

    def _put_orders(self, keys: np.ndarray) -> Iterator[Change]:
        orders, lines, counts = rows.orders_and_lines(self._rng, keys, self.sizes)
        self._orders = np.concatenate([self._orders, keys])
        self._lines = np.concatenate([self._lines, counts])
        yield Put("orders", orders)
        yield Put("lineitem", lines)

    def _remove_orders(self, count: int) -> Iterator[Change]:
        gone = self._rng.choice(len(self._orders), count, replace=False)
        keys, counts = self._orders[gone], self._lines[gone]
        starts = np.cumsum(counts) - counts
        lines = np.arange(counts.sum()) - np.repeat(starts, counts) + 1
        self._orders, self._lines = np.delete(self._orders, gone), np.delete(self._lines, gone)
        yield Remove("orders", pa.table({"o_orderkey": keys}))
        numbered = {"l_orderkey": np.repeat(keys, counts), "l_linenumber": pa.array(lines, pa.int32())}
        yield Remove("lineitem", pa.table(numbered))


def _keys(count: int) -> np.ndarray:
    return np.arange(1, count + 1)
