"""Where the Iceberg metadata of a table is, and which version is the newest.

    table-location   <table>/metadata/
    hadoop-catalog   <warehouse>/iceberg/<database>/<table>/metadata/

CHANGE     where Iceberg metadata is written (option metadata.iceberg.storage)
INVARIANT  version N exists if and only if `vN.metadata.json` does; `version-hint.text` is a hint, for readers that
           cannot list, and is checked when it is read here.
PAIMON     the folders are Paimon's; its versions are snapshot ids, ours count by ones: tags and expiry make some, too.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tablestore_engine.errors import FixData
from tablestore_engine.fileio.base import FileIO, find
from tablestore_engine.format.layout import TableLayout, check_file_name
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.iceberg.table_metadata import IcebergTable, decode_iceberg_table, metadata_name
from tablestore_engine.store.metadata.identity import UUID_OPTION
from tablestore_engine.store.table_context import TableContext


def read_table(context: TableContext, place: IcebergPlace) -> IcebergTable | None:
    """The newest version; one of another writer has no snapshots. None: there is none."""
    version = find_version(context.fileio, place)
    return None if version is None else read_version(context.fileio, place, version)


def read_version(fileio: FileIO, place: IcebergPlace, version: int) -> IcebergTable:
    """One version; a damaged one counts as another writer's, and the next one describes all states again."""
    path = place.metadata(version)
    try:
        return decode_iceberg_table(fileio.read(path), version, path)
    except FixData:
        return IcebergTable(version, 0, "", "", is_ours=False)


def table_uuid(schema: TableSchema, location: str) -> str:
    """The table's own, where it is one."""
    try:
        return str(uuid.UUID(schema.options.get(UUID_OPTION, "")))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, location))


TABLE_LOCATION, HADOOP_CATALOG = "table-location", "hadoop-catalog"
_VERSION = re.compile(r"v(\d{1,18})\.metadata\.json")


@dataclass(frozen=True)
class IcebergPlace:
    """`location`: of the Iceberg table."""

    location: str

    @property
    def folder(self) -> str:
        return f"{self.location}/metadata"

    @property
    def hint(self) -> str:
        """The number of the newest version, as text."""
        return f"{self.folder}/version-hint.text"

    def path(self, name: str) -> str:
        """A file of the folder. Raises FixData TS1190 for a name that leads elsewhere."""
        return f"{self.folder}/{check_file_name(name)}"

    def metadata(self, version: int) -> str:
        return self.path(metadata_name(version))

    def file_of(self, path: str) -> str:
        return self.path(path.rpartition("/")[2])


def find_place(layout: TableLayout, storage: str | None) -> IcebergPlace | None:
    """None without the option, and for a table that waits for its name."""
    database, _, table = layout.location.rpartition("/")
    warehouse, _, folder = database.rpartition("/")
    if storage is None or not folder.endswith(".db"):
        return None
    if storage == HADOOP_CATALOG:
        return IcebergPlace(f"{warehouse}/iceberg/{folder.removesuffix('.db')}/{table}")
    return IcebergPlace(layout.location)


def all_places(layout: TableLayout) -> tuple[IcebergPlace, ...]:
    """Everywhere that metadata of the table may be, as its options are or were."""
    found = (find_place(layout, storage) for storage in (TABLE_LOCATION, HADOOP_CATALOG))
    return tuple(place for place in found if place is not None)


def find_version(fileio: FileIO, place: IcebergPlace) -> int | None:
    """The newest version; None when there is none."""
    text = (find(fileio, place.hint) or b"").strip()
    at = int(text) if text.isdigit() and len(text) <= 18 else 0
    if at == 0 or not fileio.exists_file(place.metadata(at)):
        at = max(list_versions(fileio, place), default=0)
    if at == 0:
        return None
    while True:
        looks: list[Callable[[], bool]] = [
            partial(fileio.exists_file, place.metadata(at + step)) for step in (1, 2)
        ]
        is_next, is_second = fileio.run_together(looks)
        if not is_next:
            return at
        at += 1 + is_second
        if not is_second:
            return at


def list_versions(fileio: FileIO, place: IcebergPlace) -> list[int]:
    found = (_VERSION.fullmatch(one.name) for one in fileio.list(place.folder))
    return [int(one[1]) for one in found if one is not None]


def put_hint(fileio: FileIO, place: IcebergPlace, version: int) -> None:
    """The hint, unless a newer version is there: of two writers the later one repairs what the earlier one wrote."""
    while True:
        fileio.replace(place.hint, str(version).encode())
        newest = find_newer(fileio, place, version)
        if newest is None:
            return
        version = newest


def find_newer(fileio: FileIO, place: IcebergPlace, version: int) -> int | None:
    """The newest version above this one."""
    newer = version
    while fileio.exists_file(place.metadata(newer + 1)):
        newer += 1
    return None if newer == version else newer
