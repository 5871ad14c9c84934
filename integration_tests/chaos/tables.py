"""The tables of the chaos suite, and what one turn of a writer does to them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from integration_tests.interop.oracle import Kinded, Oracle
from integration_tests.interop.rows import Change, arrow_rows
from integration_tests.interop.schemas import Schema, schema
from tablestore_engine.api import TableSpec, WriteMode, WriteSpec

OWN_KEYS, SHARED_KEYS = 30, 10
TRANSACTION_MS = 30_000  # as long as a client may wait at least
_USER = "writer-"


@dataclass(frozen=True)
class Kind:
    """`chunk_rows`: a snapshot of more rows is several transactions. `shards`: so many publishers share the topic."""

    name: str
    writers: int
    is_keyed: bool = True
    is_eventual: bool = False
    shares_keys: bool = True
    buckets: int = 2
    chunk_rows: int = 1_000_000
    shards: int = 1

    def table(self, epoch: int) -> str:
        """Its name; each epoch has its own."""
        return f"chaos.{self.name}_{epoch}"

    def topic(self, epoch: int, seed: int) -> str:
        """The topic of it."""
        return f"chaos-{seed}-{self.name}-{epoch}"

    @property
    def schema(self) -> Schema:
        """For the oracle."""
        columns = {"id": "BIGINT", "v": "STRING"}
        return schema(columns, keys=("id",) if self.is_keyed else ())

    def spec(self, epoch: int, seed: int) -> TableSpec:
        """For whoever is the first to write."""
        options = {
            "log.system": "kafka",
            "kafka.topic": self.topic(epoch, seed),
            "kafka.transaction.timeout.ms": str(TRANSACTION_MS),
            "log.consistency": "eventual" if self.is_eventual else "transactional",
            "log.publish.shards": str(self.shards),
            **({"bucket": str(self.buckets), "num-levels": "5"} if self.is_keyed else {}),
        }
        return TableSpec(primary_key=("id",) if self.is_keyed else (), options=options)


KINDS = (
    Kind("pair", writers=2),
    Kind("four", writers=4, shares_keys=False, chunk_rows=4),
    Kind("shared", writers=2, buckets=3, shards=2, chunk_rows=3),
    Kind("bag", writers=2, is_keyed=False, buckets=1),
    Kind("early", writers=2, is_eventual=True),
    Kind("crowd", writers=4, is_eventual=True, shares_keys=False),
)


@dataclass(frozen=True)
class Command:
    """Without changes a compaction. `publishes`: no for rows that whoever comes next sends; `gated`: by a stage."""

    changes: tuple[Kinded, ...]
    overwrites: bool = False
    publishes: bool = True
    gated: bool = False

    def rows(self, kind: Kind) -> pa.Table:
        """For the engine."""
        rows = arrow_rows(kind.schema, [row for _, row in self.changes])
        if not kind.is_keyed or self.overwrites:
            return rows
        kinds = pa.array([("+I", "-U", "+U", "-D").index(one) for one, _ in self.changes], pa.int8())
        return rows.append_column("_ROW_KIND", kinds)

    def apply(self, oracle: Oracle) -> list[Change]:
        """To the dict; the net changes."""
        if self.overwrites:
            return oracle.overwrite([row for _, row in self.changes])
        return oracle.apply(self.changes)

    def spec(self, table: TableSpec, writer: int, turn: int) -> WriteSpec:
        """Under the writer's name."""
        mode = WriteMode.OVERWRITE_TABLE if self.overwrites else WriteMode.UPSERT
        make = partial(WriteSpec, table=table, mode=mode, publish=self.publishes)
        return make(commit_user=user_of(writer), commit_identifier=turn)


def user_of(writer: int) -> str:
    """The commit user of a writer."""
    return f"{_USER}{writer}"


def writer_of(user: str) -> int | None:
    """The way back; None for somebody else."""
    return int(user.removeprefix(_USER)) if user.startswith(_USER) else None


def command_of(seed: int, kind: Kind, writer: int, turn: int) -> Command:
    """Mostly changes of a few keys; each value is written once in a run."""
    chance = random.Random(f"{seed}/{kind.name}/{writer}/{turn}")
    what = chance.random()
    if what < 0.06:
        return Command(())
    keys = [1_000 * (writer + 1) + key for key in chance.sample(range(OWN_KEYS), chance.randint(1, 6))]
    if kind.shares_keys:
        keys += chance.sample(range(SHARED_KEYS), chance.randint(0, 3))
    overwrites, changes = what < 0.12, []
    for number, key in enumerate(keys):
        row: Mapping[str, object] = {"id": key, "v": f"{writer}.{turn}.{key}"}
        is_put = overwrites or not kind.is_keyed or number == 0 or chance.random() < 0.7
        changes.append(("+U" if kind.is_keyed else "+I", row) if is_put else ("-D", row))
    how = chance.random()
    return Command(tuple(changes), overwrites=overwrites, publishes=how > 0.1, gated=how > 0.85 and turn > 0)
