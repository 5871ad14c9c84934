"""A writer of demo.orders in a process of its own, so that it can be killed: argv = warehouse, url, seed, writes."""

from __future__ import annotations

import random
import sys

import pyarrow as pa

from tablestore_engine.api import Engine, WriteSpec

KEYS = 12


def changes_of(seed: str) -> pa.Table:
    """Random rows of a few orders, a quarter of them deleted."""
    chance = random.Random(seed)
    ids = sorted(chance.sample(range(KEYS), chance.randint(3, 7)))
    kinds = [3 if chance.random() < 0.25 else 2 for _ in ids]
    columns = {
        "order_id": ids,
        "customer": [f"{seed} {one}" for one in ids],
        "amount": [chance.randrange(100) / 4 for _ in ids],
        "_ROW_KIND": pa.array(kinds, pa.int8()),
    }
    return pa.table(columns)


def main(warehouse: str, url: str, seed: str, writes: str) -> None:
    """Commit and publish so many changes."""
    with Engine(warehouse, log={"kafka.bootstrap.servers": url}) as engine:
        is_keyed = bool(engine.table("demo.orders").schema.primary_keys)
        for number in range(int(writes)):
            rows = changes_of(f"{seed}.{number}")
            engine.write("demo.orders", rows if is_keyed else rows.drop_columns("_ROW_KIND"), WriteSpec())


if __name__ == "__main__":
    main(*sys.argv[1:])
