"""A warehouse on a simulated object store for benchmarks: processes on it, and what each operation costs there.

Prices     list prices of S3 Standard in us-east-1: PUT, COPY, POST and LIST 0.005 USD for 1,000 requests, GET and HEAD
           0.0004 USD, DELETE nothing. A bulk delete is a POST of HTTP and a DELETE of the bill.
INVARIANT  requests that were answered with 5xx, or lost before the store had them, are not billed; those with 4xx are.
INVARIANT  seconds are simulated: round trips and bytes, without the time of the processor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from unittest import mock

import pyarrow as pa

from tablestore_engine.api import Engine
from tablestore_engine.fileio.object_cache import CachedFileIO
from tablestore_engine.fileio.store_address import parse_address
from tests.doubles.faults import seeded_runtime
from tests.doubles.simulated_client import SimulatedFileIO
from tests.doubles.simulated_store import SimulatedRequest, SimulatedStore, StoreTraits
from tests.doubles.store_faults import BEFORE, FaultPlan, no_faults

ADDRESS = parse_address("s3://simulated/warehouse")
PRICES_USD = {"PUT": 5e-6, "COPY": 5e-6, "LIST": 5e-6, "UPLOAD": 5e-6, "GET": 4e-7, "HEAD": 4e-7}
_NOT_BILLED = {fault.name for fault in BEFORE} - {"CONFLICT"}


@dataclass(frozen=True)
class Cost:
    """Of one operation. `methods`: requests of each; `seconds`: simulated."""

    methods: Counter[str]
    read_bytes: int
    written_bytes: int
    usd: float
    seconds: float

    @property
    def requests(self) -> int:
        """All of them."""
        return sum(self.methods.values())


def cost_of(requests: list[SimulatedRequest], seconds: float) -> Cost:
    """Their sum."""
    billed = [one for one in requests if one.outcome not in _NOT_BILLED]
    return Cost(
        Counter(one.method for one in requests),
        sum(one.received for one in requests),
        sum(one.sent for one in requests),
        sum(PRICES_USD.get(one.method, 0.0) for one in billed),
        seconds,
    )


@dataclass
class SimulatedWarehouse:
    """`open` is a new process; `measure` is one operation."""

    latency_s: float
    plan: FaultPlan = no_faults
    store: SimulatedStore = field(init=False)
    _processes: int = 0

    def __post_init__(self) -> None:
        self.store = SimulatedStore(StoreTraits(latency_s=self.latency_s), self.plan)

    def open(self) -> Engine:
        """An engine that remembers nothing."""
        self._processes += 1
        clock = self.store.time
        runtime = replace(seeded_runtime(self._processes), now_ms=clock.now_ms, sleep=clock.sleep)
        files = CachedFileIO(SimulatedFileIO(ADDRESS, self.store, runtime))
        with mock.patch(
            "tablestore_engine.warehouse.warehouse.open_root", return_value=(ADDRESS.root, files)
        ):
            return Engine(ADDRESS.root, runtime=runtime)

    def measure(self, work: Callable[[], object]) -> Cost:
        """What the store is asked for."""
        with self.measured() as costs:
            work()
        return costs[0]

    @contextmanager
    def measured(self) -> Iterator[list[Cost]]:
        """The cost of the block, when it has ended."""
        first, begin_s = len(self.store.requests), self.store.time.now_s
        costs: list[Cost] = []
        yield costs
        costs.append(cost_of(self.store.requests[first:], self.store.time.now_s - begin_s))


def keyed_rows(first: int, count: int, days: int = 0) -> pa.Table:
    """Keys from `first` on; with `days` a partition column, whose value changes with each row."""
    ids = range(first, first + count)
    columns: dict[str, object] = {"id": ids, "value": [f"value {number}" for number in ids]}
    if days:
        columns["day"] = pa.array([number % days for number in ids], pa.int32())
    return pa.table(columns)
