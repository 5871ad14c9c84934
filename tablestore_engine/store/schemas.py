"""Schema files of one table (and branch): find, read, create exclusively.

Names      SchemaStore   latest, get, list and claim of `schema/schema-<N>`
INVARIANT  a schema file never changes; a new version is one exclusive create, so of two racing changes one wins.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tablestore_engine.errors import NotFound
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.layout import TableLayout, find_id
from tablestore_engine.format.schema import TableSchema, decode_schema, encode_schema


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

    def find_latest(self) -> TableSchema | None:
        """The newest schema, or None when there is none."""
        ids = self.list_ids()
        return self.get(ids[-1]) if ids else None

    def get(self, schema_id: int) -> TableSchema:
        """Schema N. Raises NotFound TS1301."""
        if schema_id not in self._cache:
            path = self.layout.schema_path(schema_id)
            if not self.fileio.exists(path):
                raise NotFound(
                    "TS1301",
                    f"schema {schema_id} of {self.layout.location} does not exist",
                    why="a snapshot or data file refers to it",
                    fix="restore the schema folder from a copy",
                )
            self._cache[schema_id] = decode_schema(self.fileio.read(path))
        return self._cache[schema_id]

    def claim(self, schema: TableSchema) -> bool:
        """Create `schema-<id>` exclusively; False when somebody was first."""
        return self.fileio.create_exclusive(self.layout.schema_path(schema.id), encode_schema(schema))
