"""The warehouse, table and brokers of a command; the same arguments on every command.

CHANGE     which warehouse, brokers and Spark settings a command has
INVARIANT  a warehouse is never made by looking for one.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.cli.command_parser import did_you_mean
from tablestore_engine.cli.output import say
from tablestore_engine.cli.profile_target import (
    LazyTarget,
    add_profile_options,
    external_paths,
    find_target,
    installed_reader,
    log_settings,
    option_words,
    project_words,
    spark_settings,
)
from tablestore_engine.cli.terminal_progress import command_progress
from tablestore_engine.cli.warehouse_folder import (
    FOLDER,
    WAREHOUSE_ENV,
    UnclearWarehouse,
    find_folder,
    our_users,
    owner_of,
)
from tablestore_engine.errors import FixData, NotFound
from tablestore_engine.fileio.storage_errors import explained
from tablestore_engine.spi import (
    BROKERS,
    KAFKA_CONFIG_ENV,
    KAFKA_ENV,
    SYSTEM,
    DeferredSettings,
    absolute_address,
    client_settings,
    is_object_store,
    local_folder,
    read_settings,
)
from tablestore_engine.warehouse.compared_states import STAGED, SnapshotName


def add_place(parser: argparse.ArgumentParser, *, name: str | None = "table") -> None:
    """NAME as `table` (needed), `any` (table, database or nothing) or None (no name), then the common options."""
    if name == "table":
        parser.add_argument("table", metavar="db.table", help="the table, as in demo.orders")
    elif name == "any":
        text = "a table, a database, or nothing for all of the warehouse"
        parser.add_argument("table", metavar="db[.table]", nargs="?", help=text)
    parser.add_argument(
        "--warehouse",
        metavar="ADDRESS",
        help=f"a folder or s3://BUCKET/PREFIX (default: ${WAREHOUSE_ENV}, "
        f"else `{FOLDER}` here, above or one folder below, else the profile's)",
    )
    add_profile_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_brokers(parser: argparse.ArgumentParser) -> None:
    """--bootstrap, --kafka-config."""
    text = f"Kafka brokers (default: ${KAFKA_ENV}, else the profile); tables do not name any"
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help=text)
    text = f"settings of the Kafka client, as security.protocol=SASL_SSL, a line each (default: ${KAFKA_CONFIG_ENV})"
    parser.add_argument("--kafka-config", metavar="FILE", help=text)


def find_warehouse(
    given: str | None,
    environ: Mapping[str, str],
    here: Path,
    *,
    owner_of: Callable[[Path], int] = owner_of,
) -> str:
    """The address: an object store's as it is named, or an absolute folder.

    Raises NotFound TS1920, FixRequest TS1921, TS1930, TS1060, TS1210, TS1211, StorageError.
    """
    named = given or environ.get(WAREHOUSE_ENV)
    if named:
        return _named_warehouse(named, here)
    return str(find_folder(here, our_users(environ), owner_of))


def _named_warehouse(named: str, here: Path) -> str:
    if is_object_store(named):
        return absolute_address(named, here)
    folder = here / Path(local_folder(named)).expanduser()
    with explained(str(folder)):
        is_there = folder.is_dir()
    if is_there:
        return str(folder)
    raise NotFound(
        "TS1920",
        f"there is no warehouse {named}",
        why=f"{folder} is no folder",
        fix=f"correct --warehouse or {WAREHOUSE_ENV}",
    )


@contextmanager
def open_engine(arguments: argparse.Namespace, *, warehouse: str | None = None) -> Iterator[Engine]:
    """The engine of the command's warehouse. Raises TS1920, TS1921."""
    address = warehouse or choose_warehouse(arguments)
    words = project_words(option_words(arguments), os.environ, Path.cwd(), address)
    target = LazyTarget(words, address, installed_reader)
    engine = Engine(
        address,
        spark=partial(_spark_settings, arguments, target),
        log=_kafka_settings(arguments, target),
        trusted_sql=getattr(arguments, "trusted_sql", False),
        runtime=replace(SYSTEM, progress=command_progress(as_json=getattr(arguments, "json", False))),
        say=say,
        external_paths=partial(external_paths, target),
    )
    try:
        yield engine
    finally:
        engine.close()


def choose_warehouse(arguments: argparse.Namespace) -> str:
    """What is named; else the profile's where its options are given; else near the current folder; else the profile's.

    Raises NotFound TS1920, UnclearWarehouse TS1921, FixRequest TS1930, TS1945.
    """
    words, here = option_words(arguments), Path.cwd()
    if words and arguments.warehouse is None:
        target = find_target(words, installed_reader)
        if target is not None:
            return target.location
    try:
        return find_warehouse(arguments.warehouse, os.environ, here)
    except UnclearWarehouse:
        target = find_target(project_words(words, os.environ, here, None), installed_reader)
        if target is None:
            raise
        return target.location


def _spark_settings(arguments: argparse.Namespace, target: LazyTarget) -> SparkSettings:
    """--master and --conf over the profile."""
    found = spark_settings(target, getattr(arguments, "master", None), dict(getattr(arguments, "conf", ())))
    if getattr(arguments, "fetch_connector", False):
        from tablestore_engine.spi import fetch_s3_jars

        return replace(found, more_jars=partial(fetch_s3_jars, say))
    return found


def _kafka_settings(arguments: argparse.Namespace, target: LazyTarget) -> Mapping[str, str]:
    """Flags, over the environment; without flags the profile below both: its passwords are for its own brokers.

    Raises TS1097, TS1098.
    """
    file, brokers = getattr(arguments, "kafka_config", None), getattr(arguments, "bootstrap", None)
    settings = read_settings(file, by="--kafka-config") if file else {}
    if settings or brokers:
        return {**settings, BROKERS: brokers} if brokers else settings
    has_brokers = KAFKA_ENV in os.environ
    return DeferredSettings(
        lambda: client_settings(os.environ, profile=log_settings(target, has_brokers=has_brokers))
    )


def list_names(engine: Engine, wanted: str | None) -> tuple[str, ...]:
    """Full names of the tables that `wanted` means: one, a database's, or all. Raises TS1414, TS1925."""
    if wanted is not None and "." in wanted:
        return (str(engine.table(wanted).identifier),)
    return tuple(
        str(info.identifier)
        for database in list_databases(engine, wanted)
        for info in engine.relations(database, with_unpublished=True)
        if info.kind == "table"
    )


def list_databases(engine: Engine, wanted: str | None, actions: Collection[str] = ()) -> tuple[str, ...]:
    """The one that is wanted, or all. `actions`: what the word could be too. Raises NotFound TS1925."""
    known = engine.databases()
    if wanted is not None and wanted not in known:
        also = f"; actions are {', '.join(actions)}" if actions else ""
        raise NotFound(
            "TS1925",
            f"there is no database {'or action ' if actions else ''}{wanted}",
            why=f"the warehouse {engine.warehouse} has {', '.join(known) or 'none'}{also}",
            fix=f"correct the name; a table is written db.table{_meant(engine, wanted, (*known, *actions))}",
        )
    return known if wanted is None else (wanted,)


def _meant(engine: Engine, word: str, words: Collection[str]) -> str:
    """A table of just this name comes before a near word, and that before a table of a near name."""
    tables = engine.find_full_names(word)
    is_exact = any(name.endswith(f".{word}") for name in tables)
    near = "" if is_exact else did_you_mean(word, words)
    return near or (f"; did you mean {' or '.join(tables)}?" if tables else "")


def check_readable(problems: Mapping[str, str], looked_at: int) -> None:
    """What could not be read, by name, after all the rest was shown. Raises FixData TS1991."""
    if problems:
        raise FixData(
            "TS1991",
            f"{len(problems)} of {looked_at} cannot be read: {', '.join(problems)}",
            why="; ".join(f"{name}: {why}" for name, why in problems.items()),
            fix="run tablestore verify on it; restore its metadata from a copy, or move its folder away",
        )


def snapshot_name(text: str) -> SnapshotName:
    """An id, `@staged` or `@staged:NAME`: the type of an argument."""
    word, _, name = text.partition(":")
    if word == STAGED and (name or text == STAGED):
        return text
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither a snapshot id nor {STAGED}[:NAME]")


def state_name(text: str) -> SnapshotName:
    """An id, a tag, `@staged` or `@staged:NAME`: the type of an argument. A tag of digits is an id."""
    return snapshot_name(text) if text.isdecimal() or text.startswith("@") else text


def published_name(text: str) -> SnapshotName:
    """An id or a tag: the type of an argument."""
    if text.startswith("@"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a snapshot id nor a tag")
    return state_name(text)


def parse_count(text: str) -> int:
    """0 or more: the type of an argument."""
    if text.isascii() and text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"expected a number, 0 or more, got {text!r}")


def split_names(text: str) -> tuple[str, ...]:
    """Names of columns in `a, b`."""
    return tuple(one.strip() for one in text.split(",") if one.strip())
