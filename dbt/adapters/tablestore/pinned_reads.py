"""Which version of a table a statement reads when it is not the current one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Protocol, TypeVar

from dbt.adapters.tablestore.dbt_errors import as_dbt_errors
from dbt.adapters.tablestore.relation import parse_version
from tablestore_engine.api import Engine, FixRequest, NotFound, TableVersion
from tablestore_engine.spi import StagedVersionMissing

Done_co = TypeVar("Done_co", covariant=True)


@as_dbt_errors()
def read_as_of(variables: Mapping[str, Any], schema: str) -> dict[str, TableVersion]:
    """`{orders: 5, other.items: audited}`: names without a schema are in the target's."""
    value = variables.get("tablestore_as_of")
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise FixRequest(
            "TS1806",
            "variable tablestore_as_of has the wrong form",
            why=f"expected a map of tables to versions, got {value!r}",
            fix="write --vars '{tablestore_as_of: {orders: 5}}'",
        )
    return {
        (name if "." in str(name) else f"{schema}.{name}"): parse_version(version)
        for name, version in value.items()
    }


def check_as_of_names(as_of: Mapping[str, TableVersion], engine: Engine) -> None:
    """Raises NotFound TS1875; a misspelt name must not run the tests on other rows than the user thinks."""
    missing = sorted(name for name in as_of if engine.find_table(name) is None)
    if missing:
        schemas = sorted({name.split(".", maxsplit=1)[0] for name in as_of} & set(engine.databases()))
        known = [
            str(one.identifier)
            for schema in schemas
            for one in engine.relations(schema)
            if one.kind == "table"
        ]
        near = get_close_matches(missing[0], known, n=1)
        raise NotFound(
            "TS1875",
            f"variable tablestore_as_of names {', '.join(missing)}",
            why="there is no table of that name; a view has no snapshots of its own",
            fix=f"did you mean {near[0]}?" if near else "write the table's name as schema.name",
        )


class PinnedRead(Protocol[Done_co]):
    """Reads tables at versions; may be called again."""

    def __call__(self, *, versions: Mapping[str, TableVersion]) -> Done_co:
        """What it reads."""


def retry_published(versions: Callable[[], Mapping[str, TableVersion]], read: PinnedRead[Done_co]) -> Done_co:
    """Once more when another thread has published, since `versions` was asked, what is to be read.

    Raises StagedVersionMissing TS1317 when a staged snapshot is gone, and the versions are the same.
    """
    pins = versions()
    while True:
        try:
            return read(versions=pins)
        except StagedVersionMissing:
            before, pins = pins, versions()
            if pins == before:
                raise
