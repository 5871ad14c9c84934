"""Primary keys across partitions: Java with its global index and we with our look-ups write one table in turns."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import Row, arrow_rows
from integration_tests.interop.schemas import schema
from integration_tests.interop.test_merge_engines import FULLY, WAITING
from tests.doses import cases, examples
from tests.doubles.key_model import KeyModel

COLUMNS = {"id": "BIGINT", "dt": "STRING", "name": "STRING", "n": "INT"}
VECTORS = {"deletion-vectors.enabled": "true"}
ENGINES = {
    "deduplicate": VECTORS,
    "partial-update": {"merge-engine": "partial-update", **VECTORS},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", **VECTORS},
    "first-row": {"merge-engine": "first-row", "deletion-vectors.enabled": "false"},
}
KINDS = {"+I": 0, "+U": 2, "-D": 3}


class Shared:
    """One table with two writers, and the dictionary that follows both."""

    def __init__(self, java: JavaPaimon, location: Path, engine: str, buckets: str, seed: int) -> None:
        options = {"bucket": buckets, "changelog-producer": "lookup", **ENGINES[engine]}
        if buckets == "-1":
            options["dynamic-bucket.target-row-num"] = "3"
        self.made = schema(COLUMNS, keys=("id",), partitions=("dt",), options=options)
        self.java, self.us, self.location, self.engine = java, Ours(), location, engine
        self.model, self.chance, self.told = KeyModel(engine), random.Random(seed), 0
        self.replayed: Counter[Row] = Counter()
        self.us.create(location, self.made)

    def write(self, who: str) -> None:
        """A batch of random rows, of repeated keys, in the order that they have."""
        draw = self.chance
        kinds = ["+I", "+I", "+U", "-D"] if self.engine == "deduplicate" else ["+I"]
        batch = [
            (
                draw.choice(kinds),
                {
                    "id": draw.randrange(12),
                    "dt": draw.choice("pqr"),
                    "name": draw.choice([None, "a", "b"]),
                    "n": draw.choice([None, 1, 2]),
                },
            )
            for _ in range(6)
        ]
        rows, listed = arrow_rows(self.made, [row for _, row in batch]), [kind for kind, _ in batch]
        if who == "us":
            self.us.write(self.location, rows, listed, duplicates="last")
        else:
            self.java.write(self.location, rows, listed, options=FULLY if who == "fully" else WAITING)
        for kind, row in batch:
            self.model.put(KINDS[kind], row)

    def check(self, where: str) -> None:
        """Both show the dictionary's rows, and Java's view of the changelog leads to them."""
        expected = Counter(tuple(row[name] for name in COLUMNS) for row in self.model.rows.values())
        assert Counter(self.us.read(self.location)) == expected, f"ours {where}"
        assert Counter(self.java.read(self.location)) == expected, f"java {where}"
        assert self.us.store(self.location).verify() == (), where
        newest = self.us.store(self.location).latest()
        assert newest is not None
        for kind, row in self.java.changelog(self.location, self.told, newest.id):
            self.replayed[row] += 1 if kind in ("+I", "+U") else -1
        self.told = newest.id
        assert +self.replayed == expected, f"changelog {where}"
        assert not -self.replayed, f"changelog {where}"


@pytest.mark.parametrize("engine", cases(list(ENGINES), 1))
def test_both_move_keys_in_turns(java: JavaPaimon, tmp_path: Path, engine: str) -> None:
    """Java finds where our keys lie and we where its keys lie, also those of its level 0: each key has one row."""
    for seed in range(examples(1, 4)):
        shared = Shared(java, tmp_path / "k.db" / f"t{seed}", engine, "-1", seed)
        shared.write("us")
        shared.check("after we began")
        for number in range(examples(2, 3)):
            shared.write("fully")
            shared.check(f"after Java, round {number}, seed {seed}")
            shared.write("waiting")
            shared.write("us")
            shared.check(f"after us, round {number}, seed {seed}")
        java.compact(shared.location)
        shared.us.compact(shared.location)
        shared.check(f"compacted by both, seed {seed}")


@pytest.mark.nightly  # by day with dynamic buckets: readers do not know how a key came to its bucket
@pytest.mark.parametrize("engine", list(ENGINES))
def test_java_reads_keys_that_we_move_between_fixed_buckets(
    java: JavaPaimon, tmp_path: Path, engine: str
) -> None:
    """Rows and changelog of our commits, as Java reads them."""
    for seed in range(examples(1, 4)):
        shared = Shared(java, tmp_path / "k.db" / f"t{seed}", engine, "2", seed)
        for number in range(4):
            shared.write("us")
            shared.check(f"after round {number}, seed {seed}")
