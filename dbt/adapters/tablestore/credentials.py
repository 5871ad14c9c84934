"""What stands under `outputs:` of a profile with `type: tablestore`.

INVARIANT  secrets stand only under `log:`, those of an object store only in the environment; nothing of `log:` is
           printed, logged or handed to the manifest.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dbt.adapters.contracts.connection import Credentials

from dbt.adapters.tablestore.config.secret_keys import refuse_secret_keys
from dbt.adapters.tablestore.dbt_errors import as_dbt_errors
from tablestore_engine.api import FixRequest
from tablestore_engine.spi import (
    BROKERS,
    KAFKA_CONFIG_ENV,
    KAFKA_ENV,
    SCRATCH_ENV,
    ReadWay,
    absolute_address,
    client_settings,
)

SPARK_KEYS = ("master", "remote", "conf", "read_way", "connector")
_CONNECTORS = ("present", "fetch")


@dataclass
class TablestoreCredentials(Credentials):
    """A target: where the warehouse lies, which database dbt builds into, how Spark and the log are reached."""

    # dbt's base class declares both as str; here database is always None and schema has no default.
    database: str | None = None  # type: ignore[assignment]
    schema: str = ""
    warehouse: str = ""
    user: str | None = None
    # How an object store is reached: endpoint, region, …; never credentials.
    storage: dict[str, Any] = field(default_factory=dict)
    # Short for log: {kafka.bootstrap.servers: …}, as `dbt init` asks for it; `none` is none.
    brokers: str | None = None
    log: dict[str, Any] = field(default_factory=dict)
    spark: dict[str, Any] = field(default_factory=dict)
    # SQL text that others stored in the warehouse may do what the project's may.
    trusted_sql: bool = False
    # Where a session keeps what it needs while it runs; TABLESTORE_SCRATCH wins over it.
    scratch: str | None = None
    # Tables are built on this branch of theirs; the variable tablestore_branch wins over it.
    branch: str | None = None
    # Folders outside of the warehouse in which data files of other engines may be read.
    external_paths: list[str] = field(default_factory=list)
    # Set by the adapter: where a relative warehouse lies; one of a profile is overwritten.
    project_root: str = "."

    @classmethod
    @as_dbt_errors()
    def validate(cls, data: Any) -> None:  # noqa: ANN401 - dbt's signature
        """Of a profile, where dbt takes any key, and of what was made of one: that has project_root too.

        Raises FixRequest TS1803 for a key that nothing reads.
        """
        known = [one.name for one in fields(cls) if not one.name.startswith("_")]
        _refuse_unknown(data, known, "", "remove it")
        super().validate(data)

    @as_dbt_errors()
    def __post_init__(self) -> None:
        for key in ("warehouse", "schema"):
            if not getattr(self, key):
                raise FixRequest(
                    "TS1801",
                    f"the profile has no {key!r}",
                    why="a tablestore target needs type, warehouse and schema",
                    fix=f"add `{key}:` to this output in profiles.yml",
                )
        locate_warehouse(self.warehouse, ".", self.storage)
        if self.database is not None and self.database != self.schema:
            raise FixRequest(
                "TS1802",
                f"the profile has both schema {self.schema!r} and database {self.database!r}",
                why="Spark has one level above tables",
                fix="remove `database:` from this output in profiles.yml",
            )
        self.database = None
        self._take_brokers()
        _refuse_unknown(self.spark, SPARK_KEYS, "spark.", "put a Spark setting under spark.conf")
        for key, known in (("read_way", tuple(ReadWay)), ("connector", _CONNECTORS)):
            value = str(self.spark.get(key, known[0]))
            if value not in known:
                raise FixRequest(
                    "TS1803",
                    f"the profile has an unknown value spark.{key}: {value}",
                    why=f"known are {', '.join(known)}",
                    fix=f"write one of them, or remove spark.{key}",
                )

    def _take_brokers(self) -> None:
        """Into `log`, which everything else reads."""
        asked = str(self.brokers or "none").strip()
        named = (self.log or {}).get(BROKERS)
        if asked.lower() == "none":
            return
        if named not in (None, asked):
            raise FixRequest(
                "TS1821",
                f"the profile has both brokers: {asked!r} and log: {BROKERS}: {named!r}",
                why="both name the brokers that tables with a log are published to",
                fix="remove one of them from this output in profiles.yml",
            )
        self.log = {**(self.log or {}), BROKERS: asked}

    @classmethod
    def translate_aliases(cls, kwargs: dict[str, Any], recurse: bool = False) -> dict[str, Any]:
        """dbt hands every config of the project through here while it parses: the first place to see a secret in one.

        The profile itself comes this way too; there secrets are at home.
        """
        if kwargs.get("type") != "tablestore":
            with as_dbt_errors():
                refuse_secret_keys(kwargs)
        return super().translate_aliases(kwargs, recurse)

    @property
    def type(self) -> str:
        return "tablestore"

    @property
    def unique_field(self) -> str:
        """What dbt hashes for its telemetry."""
        return self.warehouse

    @property
    def session_zone(self) -> str:
        """The time zone in which wall-clock columns are read."""
        return str((self.spark.get("conf") or {}).get("spark.sql.session.timeZone", "UTC"))

    def _connection_keys(self) -> tuple[str, ...]:
        """What `dbt debug` prints, and `target` has: packages read `target.database`, which is None."""
        return ("warehouse", "database", "schema", "user")


def _refuse_unknown(given: Iterable[str], known: Sequence[str], prefix: str, instead: str) -> None:
    """Raises FixRequest TS1803 with the nearest key, if one is near."""
    for key in sorted(str(one) for one in given):
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            raise FixRequest(
                "TS1803",
                f"the profile has an unknown key {prefix}{key}",
                why=f"known are {', '.join(known)}",
                fix=f"write {prefix}{near[0]}, or {instead}" if near else instead,
            )


@dataclass(frozen=True)
class EngineSettings:
    """Everything an engine is opened with; equal settings share one engine in a process."""

    location: str
    spark_master: str
    spark_conf: tuple[tuple[str, str], ...]
    log: tuple[tuple[str, str], ...] = field(repr=False)
    trusted_sql: bool = False
    scratch: str | None = None
    read_way: ReadWay = ReadWay.AUTO
    fetches_connector: bool = False
    external_paths: tuple[str, ...] = ()
    branch: str | None = None


def _texts(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Settings as sorted pairs of text; YAML booleans become Spark's and Kafka's true and false."""
    return tuple(
        sorted(
            (str(key), str(value).lower() if isinstance(value, bool) else str(value))
            for key, value in values.items()
        )
    )


def locate_warehouse(warehouse: str, project_root: str, storage: Mapping[str, Any] | None = None) -> str:
    """The warehouse as an absolute address. Raises FixRequest TS1060 for a store that there is no code for, TS1210,
    TS1211.
    """
    return absolute_address(warehouse, Path(project_root), storage or {})


@as_dbt_errors()
def log_settings(
    credentials: TablestoreCredentials, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """`log:` of the profile; TABLESTORE_KAFKA and TABLESTORE_KAFKA_CONFIG win over it. Raises TS1097, TS1098.

    Read once for each target and environment: every connection, model and Ctrl-C asks, and a file that changes under a
    run must not give it a second engine.
    """
    known: dict[tuple[str | None, ...], dict[str, str]] = vars(credentials).setdefault("_log_settings", {})
    named = (environ.get(KAFKA_ENV), environ.get(KAFKA_CONFIG_ENV))
    if named not in known:
        known[named] = client_settings(environ, profile=dict(_texts(credentials.log or {})))
    return known[named]


def describe_warehouse(
    credentials: TablestoreCredentials, project_root: str, environ: Mapping[str, str] = os.environ
) -> EngineSettings:
    """The comparable settings of this target's engine. A relative scratch lies beside the project, as the warehouse."""
    kept = credentials.scratch
    return EngineSettings(
        location=locate_warehouse(credentials.warehouse, project_root, credentials.storage),
        spark_master=str(credentials.spark.get("remote") or credentials.spark.get("master") or "local[*]"),
        spark_conf=_texts(credentials.spark.get("conf") or {}),
        log=tuple(sorted(log_settings(credentials, environ).items())),
        trusted_sql=credentials.trusted_sql,
        scratch=environ.get(SCRATCH_ENV)
        or (str((Path(project_root) / Path(kept).expanduser()).resolve()) if kept else None),
        read_way=ReadWay(str(credentials.spark.get("read_way", ReadWay.AUTO))),
        fetches_connector=credentials.spark.get("connector") == "fetch",
        external_paths=tuple(credentials.external_paths or ()),
        branch=credentials.branch,
    )
