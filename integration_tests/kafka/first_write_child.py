"""A first writer in a process of its own: argv = warehouse, url, number.

Each line of stdin names a table and its topic. Says `ready`, then for each line `done` or the error, when its row is
in the table.
"""

from __future__ import annotations

import sys

import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import TablestoreError


def main(warehouse: str, url: str, number: str) -> None:
    """Write one row of the key `number` into each table."""
    with Engine(warehouse, log={"kafka.bootstrap.servers": url}) as engine:
        print("ready", flush=True)
        for line in sys.stdin:
            name, topic = line.split()
            options = {"log.system": "kafka", "kafka.topic": topic}
            spec = WriteSpec(table=TableSpec(primary_key=("id",), options=options))
            try:
                engine.write(name, pa.table({"id": [int(number)]}), spec)
            except TablestoreError as error:
                print(repr(str(error)), flush=True)
            else:
                print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
