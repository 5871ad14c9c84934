"""`tablestore doctor`: checks what a build needs: warehouse, Java, Spark and its workers, brokers.

INVARIANT  the first problem is printed as the error that a build would meet, and the exit status is 1.
INVARIANT  where no warehouse exists yet, ./warehouse is tried, and not left behind.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
from pathlib import Path

from tablestore_engine.cli.output import print_json, write_out
from tablestore_engine.cli.profile_target import option_words
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, choose_warehouse, open_engine
from tablestore_engine.cli.warehouse_folder import WAREHOUSE_ENV, UnclearWarehouse
from tablestore_engine.spi import absolute_address, is_object_store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser, name=None)
    parser.add_argument("--master", help="Spark master, as in local[2] or spark://host:7077")
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a Spark setting, as in spark.conf of the profile; may be repeated",
    )
    parser.add_argument(
        "--fetch-connector",
        action="store_true",
        help="download Hadoop's S3 connector once, and start Spark with it",
    )
    add_brokers(parser)


def _setting(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    return key, value


def run(arguments: argparse.Namespace) -> int:
    address = _pick_warehouse(arguments)
    if not is_object_store(address) and not Path(address).exists():
        # registered first, so that it runs last: Spark's own scratch is gone by then
        atexit.register(_remove_empty, Path(address))
    with open_engine(arguments, warehouse=address) as engine:
        lines = engine.check()
    if arguments.json:
        print_json({"ok": True, "checks": list(lines)})
    else:
        for line in lines:
            write_out(f"ok  {line}")
    return 0


def _pick_warehouse(arguments: argparse.Namespace) -> str:
    """The warehouse of other commands; else the one that a build here would make."""
    named = arguments.warehouse or (None if option_words(arguments) else os.environ.get(WAREHOUSE_ENV))
    if named:
        return absolute_address(named, Path.cwd())
    try:
        return choose_warehouse(arguments)
    except UnclearWarehouse:
        return str(Path.cwd() / "warehouse")


def _remove_empty(folder: Path) -> None:
    """What the check made; folders with content stay."""
    for path in (folder / ".tablestore", folder):
        with contextlib.suppress(OSError):
            path.rmdir()
