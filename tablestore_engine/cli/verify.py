"""`tablestore verify`: every on-disk invariant of a table, or of all.

INVARIANT  it reads only, goes on past damaged tables, and its exit status is 1 when a table has a problem.
"""

from __future__ import annotations

import argparse

from tablestore_engine.api import Engine
from tablestore_engine.cli.output import print_json, say, write_out
from tablestore_engine.cli.warehouse_choice import add_place, list_names, open_engine
from tablestore_engine.spi import DAMAGED, describe_damage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser, name="any")


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine:
        found = {name: _problems(engine, name) for name in list_names(engine, arguments.table)}
    if arguments.json:
        print_json([{"table": name, "problems": list(problems)} for name, problems in found.items()])
    else:
        for name, problems in found.items():
            write_out(f"{name}: {f'{len(problems)} problems' if problems else 'all is well'}")
            for problem in problems:
                write_out(f"  {problem}")
    if not found:
        say("there are no tables")
    return 1 if any(found.values()) else 0


def _problems(engine: Engine, name: str) -> tuple[str, ...]:
    """Of one table; one that cannot even be opened is one problem, and the others are looked at all the same."""
    try:
        return engine.table(name).verify()
    except DAMAGED as damage:
        return (describe_damage(damage),)
