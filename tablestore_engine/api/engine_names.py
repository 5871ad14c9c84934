"""What an Engine says of names: databases, tables, views and functions of its warehouse."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Self

from tablestore_engine.api.guessed_names import OF_ENGINE, unknown_attribute
from tablestore_engine.api.table import Table
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.warehouse.relations.relation_list import RelationInfo
from tablestore_engine.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from tablestore_engine.api.create_table import IfExists
    from tablestore_engine.catalog.target_branch import MadeBranch
    from tablestore_engine.catalog.views import ViewDefinition


class EngineNames:
    """Each call lists the warehouse again; none starts a JVM."""

    _warehouse: Warehouse
    _seen: SeenStates | None

    def __getattr__(self, name: str) -> object:
        """Names of other libraries: the error has the call. Raises AttributeError."""
        if hasattr(type(self), name):  # a property that failed so: its own error is the true one
            return object.__getattribute__(self, name)
        raise unknown_attribute("Engine", name, OF_ENGINE)

    def _identifier(self, name: str) -> Identifier:
        """Of what has to exist. Raises FixRequest TS1401, TS1402 with the names that end like it."""
        from tablestore_engine.catalog.near_names import full_name_hint

        return Identifier.parse(name, partial(full_name_hint, self._warehouse.catalog))

    def databases(self) -> tuple[str, ...]:
        """Names, sorted."""
        return self._warehouse.catalog.list_databases()

    def on_branch(self, name: str) -> Self:
        """The same engine with its tables on a branch: a table gets it from main with its first write, and until then
        main is read. Main is not written, and nothing goes to a log. Raises FixRequest TS1107; its writes TS1221,
        Unsupported TS1222.

        >>> dev = engine.on_branch("dev")
        >>> report = dev.table("demo.orders").delete("id = 1")
        >>> len(dev.table("demo.orders")), len(engine.table("demo.orders"))
        (2, 3)
        """
        made = copy(self)
        made._warehouse = self._warehouse.on_branch(name, makes_branches=True)
        return made

    @property
    def branch(self) -> str | None:
        """On which tables are read and written; None: main."""
        return self._warehouse.catalog.branch

    def make_branch(self, name: str) -> MadeBranch | None:
        """The branch of this engine on a table, from main's newest snapshot, before rows are computed for it.

        None when it is there, when there is no such table, and without a branch. Raises FixRequest TS1350.
        """
        return self._warehouse.stores.make_branch(self._identifier(name))

    def is_on_branch(self, name: str) -> bool:
        """Whether the table is read from this engine's branch. Raises NotFound TS1414."""
        return self._warehouse.stores.get(self._identifier(name)).branch == self.branch

    def list_tables(self, database: str | None = None) -> tuple[str, ...]:
        """Tables of a database, or of all, as `db.table`, sorted; views are in `relations`.

        >>> engine.list_tables()
        ('demo.orders',)
        """
        databases = self.databases() if database is None else (database,)
        catalog = self._warehouse.catalog
        return tuple(sorted(f"{one}.{name}" for one in databases for name in catalog.list_tables(one)))

    tables = list_tables  # its name in other libraries

    def exists(self, name: str) -> bool:
        """Whether there is a table of this name.

        >>> engine.exists("demo.orders"), engine.exists("demo.nothing")
        (True, False)
        """
        return self.find_table(name) is not None

    def create_database(self, name: str) -> None:
        """An existing one is fine."""
        self._warehouse.catalog.create_database(name)

    def drop_database(self, name: str, *, cascade: bool = False) -> None:
        """With its tables when `cascade`."""
        self._warehouse.relations.drop_database(name, cascade=cascade)

    def relations(self, database: str, *, with_unpublished: bool = False) -> tuple[RelationInfo, ...]:
        """Tables and views; tables that only have a staged snapshot are left out."""
        return self._warehouse.relations.list_all(database, with_unpublished=with_unpublished)

    def relation_names(self, database: str) -> tuple[tuple[str, str], ...]:
        """(kind, name) of tables and views, from listings alone: none is opened, so a damaged one is there too."""
        catalog = self._warehouse.catalog
        tables = [("table", name) for name in catalog.list_tables(database)]
        return (*tables, *(("view", name) for name in catalog.views.list_names(database)))

    def find_relation(self, name: str) -> RelationInfo | None:
        """A table or view by its name."""
        return self._warehouse.relations.find(self._identifier(name))

    def relation(self, name: str) -> RelationInfo:
        """A table or view that exists. Raises NotFound TS1414, with the nearest name."""
        return self._warehouse.relations.get(self._identifier(name))

    def find_full_names(self, word: str) -> tuple[str, ...]:
        """`db.name` of tables and views called `word`, else of those with the nearest name; for texts of errors."""
        from tablestore_engine.catalog.near_names import find_full_names

        return tuple(str(one) for one in find_full_names(self._warehouse.catalog, word))

    def find_table(self, name: str) -> Table | None:
        """A handle, None when there is no such table."""
        identifier = self._identifier(name)
        if self._seen is not None:
            return self.find_seen_table(name)
        store = self._warehouse.stores.find(identifier)
        return None if store is None else Table(self._warehouse, identifier, store)

    def find_seen_table(self, name: str) -> Table | None:
        """A handle whose reads are all of the state that the table has now: one look. None when there is no table."""
        identifier = self._identifier(name)
        store = self._warehouse.stores.find_as_seen(identifier, self._seen)
        return None if store is None else Table(self._warehouse, identifier, store)

    def seen_table(self, name: str) -> Table:
        """The same of an existing table. Raises NotFound TS1414.

        >>> seen = engine.seen_table("demo.orders")
        >>> report = orders.delete("id = 2")
        >>> seen.latest_snapshot_id(), orders.latest_snapshot_id()
        (1, 2)
        """
        return self.find_seen_table(name) or self.table(name)

    def table(self, name: str) -> Table:
        """A handle of an existing table. Raises NotFound TS1414.

        >>> engine.table("demo.orders")
        Table('demo.orders')
        """
        found = self.find_table(name)
        identifier = self._identifier(name)
        return found or Table(self._warehouse, identifier, self._warehouse.stores.get(identifier))

    def create_table(
        self,
        name: str,
        schema: object,
        *,
        primary_key: str | Sequence[str] = (),
        partition_by: str | Sequence[str] = (),
        options: Mapping[str, str | int | bool] | None = None,
        if_exists: IfExists = "fail",
    ) -> Table:
        """Create an empty table.

        schema        a pyarrow schema, or rows as for `Table.append`, whose schema is taken. Columns that are not
                      nullable refuse NULL
        primary_key   columns whose values are unique; without them the table is append-only
        partition_by  columns that cut the table into folders
        options       table options, see docs/options.md
        if_exists     what an existing table of the name means. fail: an error; keep: it is returned when it has these
                      columns, keys, partitions and options; replace: it becomes this table, and its history stays

        Raises FixRequest TS1406, TS1415 when the name is taken, TS1580 for `keep` and a table that differs.
        Timestamps of a schema keep their unit; TS1580 refuses rows whose nanoseconds a table would lose.

        >>> schema = pa.schema({"id": pa.int64(), "name": pa.string(), "day": pa.date32()})
        >>> engine.create_table("demo.users", schema, primary_key="id", options={"bucket": 2})
        Table('demo.users')
        """
        from tablestore_engine.api.create_table import create_table, rows_of_schema, table_spec

        rows = rows_of_schema(name, schema)
        asked = table_spec(rows, primary_key=primary_key, partition_by=partition_by, options=options)
        create_table(self._warehouse, Identifier.parse(name), rows, asked, if_exists)
        return self.table(name)

    def drop_table(self, name: str) -> None:
        """Drop a table with its history, and with its log when the engine made it.

        >>> engine.drop_table("demo.orders")
        >>> engine.find_table("demo.orders") is None
        True
        """
        self._warehouse.relations.drop_table(self._identifier(name))

    def clone(self, name: str, new: str) -> None:
        """The newest snapshot of a table as a table of its own, whose files are shared; `new` is replaced.

        A clone has no log. Raises NotFound TS1414, FixRequest TS1080, Unsupported TS1380.
        """
        self._warehouse.relations.clone_table(self._identifier(name), Identifier.parse(new))

    def rename(self, old: str, new: str) -> None:
        """A table or view under a new name."""
        self._warehouse.relations.rename(self._identifier(old), Identifier.parse(new))

    def create_view(
        self,
        name: str,
        sql: str,
        *,
        comment: str | None = None,
        column_comments: Mapping[str, str] | None = None,
    ) -> None:
        """Create or replace a view."""
        from tablestore_engine.catalog.views import ViewDefinition

        definition = ViewDefinition(sql, comment, dict(column_comments or {}))
        self._warehouse.relations.put_view(self._identifier(name), definition)

    def find_view(self, name: str) -> ViewDefinition | None:
        """Stored text and comments of a view."""
        return self._warehouse.catalog.views.find(self._identifier(name))

    def drop_view(self, name: str) -> None:
        """A missing one is fine."""
        self._warehouse.relations.drop_view(self._identifier(name))

    def functions(self, database: str) -> tuple[str, ...]:
        """Names of the SQL functions of a database, sorted."""
        return self._warehouse.catalog.functions.list_names(database)

    def set_comments(self, name: str, comment: str | None, columns: Mapping[str, str]) -> None:
        """Comments of a table (one new schema version) or view."""
        self._warehouse.relations.set_comments(self._identifier(name), comment, columns)
