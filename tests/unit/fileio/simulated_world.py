"""A simulated object store for tests: its address, and processes on it."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.object_cache import CachedFileIO
from tablestore_engine.fileio.store_address import parse_address
from tests.doubles.faults import seeded_runtime
from tests.doubles.simulated_client import SimulatedFileIO
from tests.doubles.simulated_store import SimulatedStore, StoreTraits
from tests.doubles.store_faults import FaultPlan, no_faults, seeded_faults

ADDRESS = parse_address("s3://simulated/warehouse")
ROOT = ADDRESS.root


def simulated(plan: FaultPlan = no_faults, seed: int = 0, **traits: float) -> SimulatedStore:
    """An empty store."""
    return SimulatedStore(StoreTraits(**traits), plan, seed)  # type: ignore[arg-type]  # limits are whole numbers


def process_on(store: SimulatedStore, seed: int) -> SimulatedFileIO:
    """As a process of its own: no two may have the same seed, which gives ids and pauses."""
    return SimulatedFileIO(ADDRESS, store, seeded_runtime(seed))


def cached_on(store: SimulatedStore, seed: int) -> CachedFileIO:
    """The same with a memory, as the engine opens it."""
    return CachedFileIO(process_on(store, seed))


class OnSimulatedStore:
    """Of a model machine: its processes share a simulated store. Faults depend on the example alone."""

    fault_rate = 0.03

    def make_root(self) -> str:
        """The root of the store."""
        self.simulated = simulated(slow_list_rate=0.05)
        self.process_seeds = itertools.count(500_000)
        return ROOT

    @initialize(seed=st.integers(0, 1_000_000))
    def begin_faults(self, seed: int) -> None:
        """From now on requests fail."""
        self.simulated.plan = seeded_faults(seed, self.fault_rate)

    def files(self) -> FileIO:
        """As a new process opens them, with a memory of its own."""
        return cached_on(self.simulated, next(self.process_seeds))

    def teardown(self) -> None:
        """Nothing to remove."""
