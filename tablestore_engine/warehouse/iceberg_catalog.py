"""The entry of a table in an Iceberg catalog: its name there, and the version of its metadata that readers open.

CHANGE     the entry of a table in an Iceberg catalog (option metadata.iceberg.catalog)
INVARIANT  the catalog is one of pyiceberg's configuration, by its name: no address and no password is in a table.
INVARIANT  an entry never goes back to an older version, and never leaves the catalog to get a newer one: SQL compares
           and replaces in one statement, REST registers with `overwrite`. Where neither can be done, it is refused.
INVARIANT  an entry of another table of this name is never replaced.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixRequest, RetryError, TablestoreError, Unsupported

if TYPE_CHECKING:
    from tablestore_engine.store.iceberg_metadata.iceberg_place import IcebergPlace

_ATTEMPTS = 20
_VERSION = re.compile(r"v(\d{1,18})\.metadata\.json")


@dataclass(frozen=True)
class CatalogEntry:
    """Of a table. `places`: all that its metadata may be in; `version` of the newest is in `place`."""

    identifier: Identifier
    place: IcebergPlace
    places: tuple[IcebergPlace, ...]
    version: int
    exists: Callable[[str], bool]

    @property
    def key(self) -> tuple[str, str]:
        return self.identifier.database, self.identifier.name

    def is_needed(self, known: str) -> bool:
        """Whether `known`, which the catalog has, is older. Raises FixRequest TS1586 for another table's."""
        folder, _, name = re.sub(r"^file:(//)?", "", known).rpartition("/")
        if folder not in {one.folder for one in self.places}:
            raise FixRequest(
                "TS1586",
                f"{self.identifier} has an entry of another table in the Iceberg catalog",
                why=f"the entry is {known}, the metadata of the table is in {self.place.folder}",
                fix="drop the entry in the catalog without its files, and run tablestore iceberg sync",
            )
        found = _VERSION.fullmatch(name)
        is_newer = found is not None and int(found[1]) >= self.version
        return folder != self.place.folder or not is_newer or not self.exists(self.place.path(name))


@dataclass
class IcebergCatalogs:
    """Catalogs of pyiceberg's configuration, opened when they are first needed."""

    _opened: dict[str, Any] = field(default_factory=dict)

    def put(self, name: str, entry: CatalogEntry) -> None:
        """Point the entry to the version; made when it is missing.

        Raises FixRequest TS1584, TS1586, Unsupported TS1587, RetryError TS1585.
        """
        self._run(name, lambda catalog: _put_or_refuse(catalog, entry))

    def drop(self, name: str, identifier: Identifier) -> None:
        """Take the entry away, if there is one; no file is deleted. Raises FixRequest TS1584, RetryError TS1585."""
        self._run(name, lambda catalog: _drop(catalog, (identifier.database, identifier.name)))

    def _run(self, name: str, work: Callable[[Any], object]) -> None:
        try:
            work(self._open(name))
        except TablestoreError:
            raise
        except Exception as error:  # of pyiceberg, and of each catalog's own client
            self._opened.pop(name, None)
            first_line = (str(error).strip().splitlines() or [""])[0]
            raise _not_updated(name, f"{type(error).__name__}: {first_line}") from error

    def _open(self, name: str) -> Any:  # noqa: ANN401 - pyiceberg is an extra
        if name not in self._opened:
            try:
                module = importlib.import_module("pyiceberg.catalog")
            except ImportError as error:
                raise FixRequest(
                    "TS1584",
                    f"the Iceberg catalog {name} cannot be used",
                    why=f"the package pyiceberg is missing: {error}",
                    fix="pip install 'dbt-tablestore[iceberg]', or take the option metadata.iceberg.catalog away",
                ) from error
            self._opened[name] = module.load_catalog(name)
        return self._opened[name]


def _put_or_refuse(catalog: Any, entry: CatalogEntry) -> None:  # noqa: ANN401 - pyiceberg is an extra
    """What a server cannot read today it cannot read after the next commit."""
    try:
        _put(catalog, entry)
    except _failures().BadRequestError as error:
        raise Unsupported(
            "TS1587",
            f"the Iceberg catalog {catalog.name} cannot register {entry.identifier}",
            why=f"it refused the metadata: {error}",
            fix="let readers open the folder; if the server does not know format version 3, make a table with "
            "metadata.iceberg.format-version = 2",
        ) from error


def _put(catalog: Any, entry: CatalogEntry) -> None:  # noqa: ANN401 - pyiceberg is an extra
    catalog.create_namespace_if_not_exists((entry.identifier.database,))
    path, is_sql = entry.place.metadata(entry.version), hasattr(catalog, "engine")
    for _ in range(_ATTEMPTS):
        known = _known_in_sql(catalog, entry) if is_sql else _known(catalog, entry)
        if known is None:
            catalog.register_table(entry.key, path)
            return
        if not entry.is_needed(known):
            return
        if not is_sql:
            _register_over(catalog, entry, path)
            return
        if _replaced_in_sql(catalog, entry, known, path):
            return
    raise _not_updated(catalog.name, f"other writers changed the entry {_ATTEMPTS} times meanwhile")


def _known(catalog: Any, entry: CatalogEntry) -> str | None:  # noqa: ANN401 - pyiceberg is an extra
    try:
        return str(catalog.load_table(entry.key).metadata_location)
    except _failures().NoSuchTableError:
        return None


def _drop(catalog: Any, key: tuple[str, str]) -> None:  # noqa: ANN401 - pyiceberg is an extra
    """Without a look at the metadata, which may be gone."""
    with suppress(_failures().NoSuchTableError):
        catalog.drop_table(key)


def _register_over(catalog: Any, entry: CatalogEntry, path: str) -> None:  # noqa: ANN401 - pyiceberg is an extra
    """In one request, or not at all: an entry that is dropped and made again loses its rights, and readers miss it."""
    try:
        catalog.register_table(entry.key, path, overwrite=True)
    except Exception as error:
        refusals = (_failures().TableAlreadyExistsError, _failures().RESTError, NotImplementedError)
        if type(error) not in refusals:  # RESTError itself: its subclasses are failures of the server
            raise
        raise Unsupported(
            "TS1587",
            f"the Iceberg catalog {catalog.name} cannot replace the metadata of {entry.identifier}",
            why=f"it refused to register the table over its entry: {type(error).__name__}: {error}",
            fix="use a SQL catalog, or a REST catalog that registers with overwrite; or let readers open the folder",
        ) from error


def _known_in_sql(catalog: Any, entry: CatalogEntry) -> str | None:  # noqa: ANN401 - pyiceberg is an extra
    sql, orm = importlib.import_module("sqlalchemy"), importlib.import_module("sqlalchemy.orm")
    table, where = _sql_row(catalog, entry)
    with orm.Session(catalog.engine) as session:
        found = session.execute(sql.select(table.metadata_location).where(*where)).scalar_one_or_none()
    return None if found is None else str(found)


def _replaced_in_sql(catalog: Any, entry: CatalogEntry, known: str, path: str) -> bool:  # noqa: ANN401 - pyiceberg is an extra
    """As SqlCatalog commits: one UPDATE of the row as it was read. False: another writer was first."""
    sql, orm = importlib.import_module("sqlalchemy"), importlib.import_module("sqlalchemy.orm")
    table, where = _sql_row(catalog, entry)
    change = sql.update(table).where(*where, table.metadata_location == known)
    with orm.Session(catalog.engine) as session:
        done = session.execute(change.values(metadata_location=path, previous_metadata_location=known))
        session.commit()
        return bool(done.rowcount)


def _sql_row(catalog: Any, entry: CatalogEntry) -> tuple[Any, tuple[Any, ...]]:  # noqa: ANN401 - pyiceberg is an extra
    table = importlib.import_module("pyiceberg.catalog.sql").IcebergTables
    database, name = entry.key
    same = (table.catalog_name == catalog.name, table.table_namespace == database, table.table_name == name)
    return table, same


def _failures() -> Any:  # noqa: ANN401 - pyiceberg is an extra
    return importlib.import_module("pyiceberg.exceptions")


def _not_updated(name: str, why: str) -> RetryError:
    return RetryError(
        "TS1585",
        f"the Iceberg catalog {name} was not updated",
        why=why,
        fix="nothing: the next commit does it; or run tablestore iceberg sync",
    )
