"""The target of a dbt profile, for a command that needs brokers or Spark: dbt reads it, once, at first use.

CHANGE     when a command uses a dbt profile
Steps      is there a project: an option, DBT_PROJECT_DIR, dbt_project.yml here or above, else beside the warehouse →
           the entry point `tablestore.profile` of the dbt adapter, which asks dbt → brokers, Spark
INVARIANT  a target counts for the warehouse that it names: brokers and passwords of one are not used for another.
INVARIANT  nothing of dbt is imported without a project, nor by a command that needs neither brokers nor Spark.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from tablestore_engine.api import SparkSettings
from tablestore_engine.cli.output import say
from tablestore_engine.errors import FixRequest
from tablestore_engine.spi import OrderedLock, Rank, ReadWay, absolute_address, is_object_store

GROUP = "tablestore.profile"
_OPTIONS = {
    "--project-dir": "folder of the dbt project (default: as dbt finds it, else the folder of the warehouse)",
    "--profiles-dir": "folder of profiles.yml, as in dbt",
    "--profile": "the profile, as in dbt",
    "--target": "the target of the profile, as in dbt",
}


class ProfileTarget(Protocol):
    """What a target says: where its warehouse is, how Spark and the brokers are reached."""

    location: str
    spark_master: str
    spark_conf: tuple[tuple[str, str], ...]
    log: tuple[tuple[str, str], ...]
    read_way: ReadWay
    fetches_connector: bool
    external_paths: tuple[str, ...]


Read = Callable[[Sequence[str]], ProfileTarget | None]


def add_profile_options(parser: argparse.ArgumentParser) -> None:
    """--project-dir, --profiles-dir, --profile, --target."""
    for flag, text in _OPTIONS.items():
        parser.add_argument(flag, metavar=flag[2:].split("-")[0].upper(), help=text)


def option_words(arguments: argparse.Namespace) -> list[str]:
    """Those that were given, as dbt takes them."""
    given = {flag: getattr(arguments, flag[2:].replace("-", "_"), None) for flag in _OPTIONS}
    return [word for flag, value in given.items() if value is not None for word in (flag, value)]


def project_words(
    words: Sequence[str], environ: Mapping[str, str], here: Path, warehouse: str | None
) -> list[str] | None:
    """The words for dbt; None: there is no project. `warehouse`: in whose folder a project counts, too.

    In a project that dbt does not find from `here`, dbt reads what it would read in that project's folder.
    """
    named = "--project-dir" in words or "DBT_PROJECT_DIR" in environ or "DBT_ENGINE_PROJECT_DIR" in environ
    if named or any(_is_project(one) for one in (here, *here.parents)):
        return [*words]
    beside = None if warehouse is None or is_object_store(warehouse) else Path(warehouse).parent
    if beside is None or not _is_project(beside):
        return [*words] if words else None
    more = ["--project-dir", str(beside)]
    is_named = "--profiles-dir" in words or "DBT_PROFILES_DIR" in environ
    if not is_named and (beside / "profiles.yml").is_file():
        more += ["--profiles-dir", str(beside)]
    return [*words, *more]


def _is_project(folder: Path) -> bool:
    return (folder / "dbt_project.yml").is_file()


class LazyTarget:
    """The target of one command, read once. Threads may share it; an error is raised again at each call."""

    def __init__(
        self, words: Sequence[str] | None, warehouse: str, find_reader: Callable[[], Read | None]
    ) -> None:
        self._words, self._warehouse, self._find_reader = words, warehouse, find_reader
        self._lock = OrderedLock("dbt profile", Rank.PROFILE)
        self._found: list[ProfileTarget | None] = []

    def find(self) -> ProfileTarget | None:
        """None: no project, no adapter, or the target of another warehouse. Raises FixRequest TS1945."""
        with self._lock:
            if not self._found:
                self._found.append(self._read())
            return self._found[0]

    def _read(self) -> ProfileTarget | None:
        found = find_target(self._words, self._find_reader)
        if found is None or _is_same(found.location, self._warehouse):
            return found
        say(f"the profile is not used: its warehouse is {found.location}, and this is {self._warehouse}")
        return None


def find_target(words: Sequence[str] | None, find_reader: Callable[[], Read | None]) -> ProfileTarget | None:
    """Raises FixRequest TS1945."""
    read = None if words is None else find_reader()
    return None if read is None or words is None else read(words)


def installed_reader() -> Read | None:
    """The adapter's; importing it imports dbt."""
    for point in entry_points(group=GROUP):
        read: Read = point.load()
        return read
    return None


def log_settings(target: LazyTarget, *, has_brokers: bool) -> Mapping[str, str]:
    """`log:` of the profile. A profile that cannot be read is no error where brokers are named otherwise."""
    try:
        found = target.find()
    except FixRequest as error:
        if not has_brokers:
            raise
        say(f"the profile is not used: {error}")
        return {}
    return {} if found is None else dict(found.log)


def external_paths(target: LazyTarget) -> tuple[str, ...]:
    """`external_paths:` of the profile."""
    found = target.find()
    return () if found is None else found.external_paths


def spark_settings(target: LazyTarget, master: str | None, conf: Mapping[str, str]) -> SparkSettings:
    """`spark:` of the profile; `master` and `conf` of the command win."""
    from tablestore_engine.spi import fetch_s3_jars

    found = target.find()
    if found is None:
        return SparkSettings(master or SparkSettings.master, conf)
    chosen = master or found.spark_master
    fetches = found.fetches_connector and chosen.startswith("local")
    return SparkSettings(
        chosen,
        {**dict(found.spark_conf), **conf},
        found.read_way,
        more_jars=partial(fetch_s3_jars, say) if fetches else tuple,
    )


def _is_same(one: str, other: str) -> bool:
    """Whether two addresses name one place; settings of an object store do not count."""
    first, second = (absolute_address(text, Path.cwd()) for text in (one, other))
    if is_object_store(first):
        first, second = (text.partition("?")[0].rstrip("/") for text in (first, second))
    return first == second
