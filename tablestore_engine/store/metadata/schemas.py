"""Schema files of one table (and branch): find, read, create exclusively; which of them is the table's schema.

CHANGE     which schema of a table is current
Rule       The schema of a table is the one that its newest snapshot names. A file that a commit of ours claimed
           (`tablestore.claim`) and that no snapshot names changes nothing for any reader: its commit died or was
           overtaken, and only its number is spent. A newer file without a claim is another engine's ALTER, complete
           in itself: it counts at once, as it does for them. Without any snapshot the newest file without a claim.
Others     Java Paimon and pypaimon take the newest FILE. Between the claims of schema and snapshot, and after a kill
           there, they see columns that no snapshot has: `cover` puts a copy of the true schema on top, after each
           commit that finds such a file and after each refusal.
Another's  A file whose uuid is another table's (a late ALTER of a dropped table, on stores without folders) counts for
           nothing, and its number is spent. Tables of other engines have no uuid: see decision 0064.
INVARIANT  a schema file never changes and is never deleted: another engine's writer may work with it.
INVARIANT  a number is used once per table, so a cache by number is right as long as the table is the same one.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tablestore_engine.errors import FixData, NotFound
from tablestore_engine.fileio.base import FileIO, find
from tablestore_engine.format.layout import TableLayout, find_id
from tablestore_engine.format.schema import TableSchema, decode_schema, encode_schema
from tablestore_engine.store.metadata.identity import UUID_OPTION, has_first_schema, table_gone

Check = Callable[[], None]


@dataclass(frozen=True)
class SchemaStore:
    """The schemas of one table; read files are kept, they are immutable."""

    fileio: FileIO
    layout: TableLayout
    _cache: dict[int, TableSchema] = field(default_factory=dict, compare=False, repr=False)

    def list_ids(self) -> tuple[int, ...]:
        """All schema ids, ascending; empty when there is no such table."""
        names = (status.name for status in self.fileio.list(self.layout.schema_dir))
        return tuple(sorted(number for name in names if (number := find_id(name, "schema-")) is not None))

    def get_newest_id(self) -> int:
        """The highest number, whether it counts or not. Raises RetryError TS1365 when the table vanished."""
        numbers = self.list_ids()
        if not numbers:
            raise table_gone(self.layout.location, is_replaced=False)
        return numbers[-1]

    def find_current(self, named: int | None, ids: Sequence[int] | None = None) -> TableSchema | None:
        """The table's schema when its newest snapshot names `named` (None: no snapshot); None without a table.

        `ids`: as list_ids gave them to this operation; None: look now.
        """
        for number in reversed(self.list_ids() if ids is None else ids):
            if number == named:
                break
            if named is not None and number < named:
                break
            schema = self.get(number)
            if schema.claim is None and not self._is_foreign(schema):
                return schema
        return None if named is None else self.get(named)

    def get(self, schema_id: int) -> TableSchema:
        """Schema N. Raises NotFound TS1301."""
        if schema_id not in self._cache:
            path = self.layout.schema_path(schema_id)
            data = find(self.fileio, path)
            if data is None:
                raise NotFound(
                    "TS1301",
                    f"schema {schema_id} of {self.layout.location} does not exist",
                    why="a snapshot or data file refers to it",
                    fix="restore the schema folder from a copy",
                )
            self._cache[schema_id] = decode_schema(data, path)
        return self._cache[schema_id]

    def find_readable(self) -> TableSchema | None:
        """The newest schema file that can be read, whether it counts or not: of a table that is damaged."""
        for number in reversed(self.list_ids()):
            with suppress(FixData, NotFound):
                return self.get(number)
        return None

    def remember(self, schema_id: int, data: bytes) -> None:
        """The bytes of a schema file that was read already."""
        if schema_id not in self._cache:
            self._cache[schema_id] = decode_schema(data, self.layout.schema_path(schema_id))

    # ---- claims --------------------------------------------------------------------------------------------

    def numbered(self, wanted: TableSchema, claim: str, *, above: TableSchema) -> TableSchema:
        """`wanted`, made from `above`, as the file of this claim: the newest if it is that already, else the next.

        A newer schema that counts gives its own number, which is taken: the claim fails, and planning sees it.
        """
        newest = self.get_newest_id()
        for number in reversed(self.list_ids()):
            found = self.get(number)
            if number > above.id and found.claim is None and not self._is_foreign(found):
                return replace(wanted, id=number, claim=claim)
            if number == newest and found.claim == claim and is_same_schema(found, wanted):
                return found
            if number <= above.id:
                break
        return replace(wanted, id=newest + 1, claim=claim)

    def claim(self, schema: TableSchema, check: Check | None = None) -> bool:
        """Create `schema-<id>` exclusively; False when somebody was first. `check` as in FileIO.

        Raises FixRequest TS1138, TS1139, TS1140 for what could not be read again (schema_check), TS1143, TS1144, TS1145
        for what Iceberg could not read (schema_mapping).
        """
        from tablestore_engine.format.schema_check import check_schema
        from tablestore_engine.iceberg.schema_mapping import check_iceberg

        def older() -> Iterator[TableSchema]:
            return (self.get(one) for one in self.list_ids() if one < schema.id)

        check_schema(schema, older)
        check_iceberg(schema, older)
        return self.copy(schema, check)

    def copy(self, schema: TableSchema, check: Check | None = None) -> bool:
        """As claim, of a schema that counts already: of this table, or of the one that a clone is made of."""
        path, data = self.layout.schema_path(schema.id), encode_schema(schema)
        is_made = self.fileio.create_exclusive(path, data, check=check)
        if is_made:
            self.remember(schema.id, data)
        return is_made

    def claim_or_find(self, schema: TableSchema, check: Check) -> bool:
        """Whether the very same file is there now: made here, or by an earlier turn of the same claim."""
        return self.claim(schema, check) or encode_schema(self.get(schema.id)) == encode_schema(schema)

    def cover(self, current: TableSchema, claim: str, check: Check) -> bool:
        """Put a copy of the table's schema on top of a newer file that counts for nothing; whether that was needed.

        For engines that take the newest file. A file without a claim is another engine's and stays on top.
        """
        newest = self.get(self.get_newest_id())
        counts = newest.claim is None and not self._is_foreign(newest)
        if newest.id <= current.id or counts or is_same_schema(newest, current):
            return False
        return self.copy(replace(current, id=newest.id + 1, claim=claim), check)

    def _is_foreign(self, schema: TableSchema) -> bool:
        """Whether it is another table's: told by the uuid of the oldest schema, which is this table's.

        With folders never, as is_of_another.
        """
        if self.fileio.folders is not None:
            return False
        oldest = next(iter(self.list_ids()), schema.id)  # none: the table vanished meanwhile
        if schema.id == oldest:
            return False
        own, said = self.get(oldest).options.get(UUID_OPTION), schema.options.get(UUID_OPTION)
        return None not in (own, said) and own != said


def holds_table(fileio: FileIO, location: str) -> bool:
    """Whether the folder `location` holds a table now. One whose schema cannot be read is there, too."""
    if fileio.folders is not None:
        return bool(SchemaStore(fileio, TableLayout(location)).list_ids())
    return has_first_schema(fileio, location)


def looks_like_table(fileio: FileIO, location: str) -> bool:
    """The same for lists of many folders: one look, no listing. An empty folder of schemas passes, too."""
    if fileio.folders is not None:
        return fileio.exists(f"{location}/schema")
    return has_first_schema(fileio, location)


def is_same_schema(one: TableSchema, other: TableSchema) -> bool:
    """Equal but for number and time of writing."""
    return replace(one, id=0, time_millis=0) == replace(other, id=0, time_millis=0)


def is_described(one: TableSchema, other: TableSchema) -> bool:
    """Equal but for comments: no row reads differently."""
    return is_same_schema(_plain(one), _plain(other))


def _plain(schema: TableSchema) -> TableSchema:
    fields = tuple(replace(field, description=None) for field in schema.fields)
    return replace(schema, fields=fields, comment=None)
