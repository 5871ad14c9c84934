"""A writer of a table with an eventual log in a process of its own, so that it can be killed.

argv = warehouse, url, name, seed, first, writes: commits `writes` random changes of d.t from number `first` on under
the commit user `name`; prints the number of each commit when it is there and published.
"""

from __future__ import annotations

import random
import sys

import pyarrow as pa

from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.errors import RetryError, TablestoreError

KEYS = 12


def rows_of(seed: str, number: int) -> pa.Table:
    """Puts and deletes of a few keys: a pure function."""
    chance = random.Random(f"{seed}/{number}")
    ids = sorted(chance.sample(range(KEYS), chance.randint(1, 5)))
    kinds = [3 if chance.random() < 0.25 else 2 for _ in ids]
    return pa.table(
        {"id": ids, "v": [f"{seed}-{number}-{i}" for i in ids], "_ROW_KIND": pa.array(kinds, pa.int8())}
    )


def main(warehouse: str, url: str, name: str, seed: str, first: str, writes: str) -> None:
    """Writes until all are there; what others overtake is written again."""
    log = {"kafka.bootstrap.servers": url, "kafka.socket.timeout.ms": "3000"}
    with Engine(warehouse, log=log) as engine:
        print("ready", flush=True)
        for number in range(int(first), int(first) + int(writes)):
            spec = WriteSpec(commit_user=name, commit_identifier=number)
            while True:
                try:
                    engine.write("d.t", rows_of(seed, number), spec)
                    break
                except RetryError as error:
                    if error.code not in ("TS1305", "TS1710", "TS1711", "TS1730"):
                        raise
                except TablestoreError as error:
                    if error.code != "TS1070":  # committed; whoever publishes next sends it
                        raise
                    break
            print(number, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
