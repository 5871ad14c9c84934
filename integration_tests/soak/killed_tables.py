"""The tables of writers that are killed: merge engine, changelog producer, buckets, indexes, tags and log, from a seed.

INVARIANT  a table is a pure function of its seed.
Refused    not drawn: keys across partitions or dynamic buckets with a log (TS1127, TS1778), and first-row with the
           producer input.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from integration_tests.interop.schemas import Schema, schema
from integration_tests.s3.store_mode import is_on

DAYS = ("2026-01-01", "2026-01-02")
COLUMNS = {"id": "BIGINT", "day": "STRING", "g": "INT", "s": "BIGINT", "a": "STRING", "b": "STRING"}
_GROUPS = {"fields.g.sequence-group": "a,s"}
# name -> (merge engine, options beside it, whether rows may be retractions)
ENGINES: Mapping[str, tuple[str, Mapping[str, str], bool]] = {
    "deduplicate": ("deduplicate", {}, True),
    "first-row": ("first-row", {}, False),
    "aggregation": (
        "aggregation",
        {
            "fields.s.aggregate-function": "sum",
            "fields.g.aggregate-function": "max",
            "fields.g.ignore-retract": "true",
            "fields.a.aggregate-function": "listagg",
            "fields.a.ignore-retract": "true",
        },
        True,
    ),
    "aggregation, removing": (
        "aggregation",
        {"fields.s.aggregate-function": "sum", "aggregation.remove-record-on-delete": "true"},
        True,
    ),
    "partial-update, removing": (
        "partial-update",
        {"partial-update.remove-record-on-delete": "true"},
        True,
    ),
    "partial-update, groups": (
        "partial-update",
        {**_GROUPS, "partial-update.remove-record-on-sequence-group": "g"},
        True,
    ),
    "partial-update, sums": ("partial-update", {**_GROUPS, "fields.s.aggregate-function": "sum"}, False),
}
PRODUCERS = ("lookup", "lookup", "input", "none")
BUCKETS: Mapping[str, Mapping[str, str]] = {
    "fixed": {},
    "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "12"},
    "auto": {"bucket": "auto"},
}
INDEXES: Mapping[str, Mapping[str, str]] = {
    "none": {},
    "bloom": {"file-index.bloom-filter.columns": "a,g"},
    "bitmap": {"file-index.bitmap.columns": "a,g"},
}
MERGED = {
    "bucket": "1",
    "deletion-vectors.enabled": "false",
    "changelog-producer": "none",
    "write-only": "false",
}


@dataclass(frozen=True)
class KilledTable:
    """What a table is; `log`: '' or its consistency; `is_converted`: its readers merge until the first turn is done."""

    seed: int
    engine: str
    producer: str
    buckets: str
    index: str
    log: str
    writers: int
    is_partitioned: bool
    is_converted: bool
    makes_tags: bool
    few_buckets: int
    is_crossing: bool = False

    @property
    def merge_engine(self) -> str:
        """As the option says it."""
        return ENGINES[self.engine][0]

    @property
    def takes_retractions(self) -> bool:
        """Whether rows may be `-D`."""
        return ENGINES[self.engine][2]

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns of the key; where keys cross partitions it lacks the partition."""
        return ("id", "day") if self.is_partitioned and not self.is_crossing else ("id",)

    @property
    def options(self) -> dict[str, str]:
        """Of the table that the first write makes."""
        made = {"bucket": str(self.few_buckets), "num-levels": "6", "manifest.merge-min-count": "4"}
        made |= {"merge-engine": self.merge_engine, "changelog-producer": self.producer}
        made |= {**ENGINES[self.engine][1], **BUCKETS[self.buckets], **INDEXES[self.index]}
        if self.makes_tags:
            made |= {"tag.automatic-creation": "process-time", "tag.creation-period": "hourly"}
        if self.log:
            made |= {"log.system": "kafka", "log.consistency": self.log, "kafka.topic": self.topic}
        return {**made, **MERGED} if self.is_converted else made

    @property
    def topic(self) -> str:
        """Of the log."""
        return f"kills-{self.seed}"

    @property
    def schema(self) -> Schema:
        """For the oracle, and for a table that others made."""
        partitions = ("day",) if self.is_partitioned else ()
        return schema(COLUMNS, keys=self.keys, partitions=partitions, options=self.options)

    def __str__(self) -> str:
        extra = [self.buckets if self.buckets != "fixed" else f"{self.few_buckets} buckets"]
        extra += [f"index {self.index}"] if self.index != "none" else []
        extra += [f"log {self.log}"] if self.log else []
        extra += (
            ["keys across partitions" if self.is_crossing else "partitioned"] if self.is_partitioned else []
        )
        extra += ["converted"] if self.is_converted else []
        extra += ["automatic tags"] if self.makes_tags else []
        return f"{self.engine}, {self.producer}, {', '.join(extra)}, {self.writers} writers"


def day_of(table: KilledTable, key: int, chance: random.Random) -> str | None:
    """The partition of a row; no value where it is none, so that no engine has to fold it."""
    if table.is_crossing:
        return chance.choice(DAYS)
    return DAYS[key % 2] if table.is_partitioned else None


def table_of_seed(seed: int, *, log: bool = False) -> KilledTable:
    """Engines, producers and buckets in turn, so that few tables have all of them; the rest by chance."""
    chance = random.Random(f"killed table {seed}")
    engine = list(ENGINES)[seed % len(ENGINES)]
    producer = chance.choice(PRODUCERS)
    if ENGINES[engine][0] == "first-row" and producer == "input":
        producer = "lookup"  # Paimon refuses input there
    is_converted = not log and ENGINES[engine][0] != "first-row" and chance.random() < 0.2
    writers = chance.choice((1, 2, 3))
    is_partitioned = not is_converted and chance.random() < 0.4
    is_crossing = is_partitioned and not log and chance.random() < 0.5
    if is_crossing and producer == "input":
        producer = "lookup"  # it has deletes of moves beside the rows that came
    return KilledTable(
        seed=seed,
        engine=engine,
        producer="none" if is_converted else "lookup" if log else producer,
        buckets="fixed" if is_converted else chance.choice(("fixed", "auto") if log else tuple(BUCKETS)),
        index=chance.choice(("none", "bloom", "bitmap")),
        log=chance.choice(("transactional", "eventual")) if log else "",
        writers=writers,
        is_partitioned=is_partitioned,
        is_converted=is_converted,
        makes_tags=writers == 1 and not is_converted and not is_on() and chance.random() < 0.7,
        few_buckets=chance.choice((1, 2, 4, 8)),
        is_crossing=is_crossing,
    )
