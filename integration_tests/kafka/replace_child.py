"""Gives a table another key and topic, in a process of its own that may die: argv = warehouse, url, topic, staged."""

from __future__ import annotations

import sys

import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.spi import Outcome, Verdict, pick_group

NAME = "d.orders"
ROWS = pa.table({"id": [2, 3], "day": ["day 2", "day 3"]})


def replace(engine: Engine, topic: str, *, is_staged: bool) -> None:
    """The new table beside the old one, then in its place; a staged one is green and published."""
    options = {"log.system": "kafka", "kafka.topic": topic}
    table = TableSpec(primary_key=("day",), options=options)
    engine.write(NAME, ROWS, WriteSpec(table=table, beside=True, stage="run" if is_staged else None))
    if is_staged:
        publish(engine)


def publish(engine: Engine) -> None:
    """All that waits, or is not finished."""
    book = engine.gate.read_book("d")
    for item in book.staged:
        engine.gate.record(item, Outcome("t", Verdict.GREEN, (item.as_read,)))
    while group := pick_group(book, engine.gate.see(book)):
        engine.gate.publish(group)
        book = engine.gate.read_book("d")


def main(warehouse: str, url: str, topic: str, staged: str) -> None:
    """Once."""
    with Engine(warehouse, log={"kafka.bootstrap.servers": url}) as engine:
        replace(engine, topic, is_staged=staged == "staged")


if __name__ == "__main__":
    main(*sys.argv[1:])
