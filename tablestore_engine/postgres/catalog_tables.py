"""Tables of a PostgreSQL database as its catalog lists them, and which of them can be followed.

CHANGE     which PostgreSQL tables can be followed
WHY        what cannot be followed is reported before its first row: the database's log does not show it later.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.postgres.database_source import DatabaseSource, pattern_of

_GENERATED_SENT = 180000  # from here on the log has values of stored generated columns
_LEFT_OUT = ("money[]", "interval[]")  # by Debezium, even with include.unknown.datatypes
_TOLD_ARRAYS = re.compile(
    r"(text|character varying|character|integer|bigint|uuid|date|jsonb?|bytea)(\(\d+\))?\[\]"
)
_TABLES = """select c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text,
c.relreplident::text, case when c.relispartition then pg_partition_root(c.oid)::oid::bigint else 0 end,
c.relkind = 'r' and exists (select from pg_inherits where inhparent = c.oid), row_security_active(c.oid),
coalesce((select jsonb_object_agg(l.oid::text,
array[pg_relation_filenode(l.oid)::text, l.oid::regclass::text, i.xmin::text, l.xmin::text,
case when i.xmin = m.xmin then 'made' else 'attached' end])
from pg_partition_tree(c.oid) t join pg_class l on l.oid = t.relid join pg_inherits i on i.inhrelid = l.oid
join pg_attribute m on m.attrelid = l.oid and m.attname = 'tableoid'
where t.isleaf and c.relkind = 'p'), '{}'),
c.relkind = 'p' and exists (select from pg_partition_tree(c.oid) t join pg_class l on l.oid = t.relid
where l.relkind = 'f' or l.relpersistence = 'u'),
coalesce(pg_relation_filenode(c.oid)::text, ''), coalesce((select r.oid::text from pg_publication_rel r
join pg_publication p on p.oid = r.prpubid where r.prrelid = c.oid and p.pubname = %s), '')
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'f') and c.relpersistence in ('p', 'u') and n.nspname !~ '^pg_'
and n.nspname <> 'information_schema' order by 2, 3"""
_COLUMNS = """select attrelid::bigint, attname::text, attnum::int, attgenerated::text, format_type(atttypid, atttypmod),
attnotnull, xmin::text, atthasmissing or exists (select from pg_partition_tree(attrelid) t
join pg_attribute l on l.attrelid = t.relid and l.attname = a.attname where l.atthasmissing)
from pg_attribute a where attnum > 0 and not attisdropped and attrelid = any(%s::oid[]) order by attrelid, attnum"""
_MEANINGS = """with recursive part(relation, number, kind) as (
select attrelid, attnum, atttypid from pg_attribute
where attnum > 0 and not attisdropped and attrelid = any(%s::oid[])
union
select p.relation, p.number, m.kind from part p join pg_type t on t.oid = p.kind, lateral (
select t.typbasetype where t.typtype = 'd' union all select t.typelem where t.typelem <> 0 and t.typlen = -1
union all select r.rngsubtype from pg_range r
where t.oid::text in (r.rngtypid::text, to_jsonb(r) ->> 'rngmultitypid') -- which came with PostgreSQL 14
union all select a.atttypid from pg_attribute a
where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped) m(kind))
select p.relation::bigint, p.number::int, 'label ' || e.oid, e.enumlabel::text
from part p join pg_enum e on e.enumtypid = p.kind
union all
select p.relation::bigint, p.number::int, 'attributes ' || t.oid,
(select string_agg(concat_ws(' ', a.attnum, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum)
from pg_attribute a where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped)
from part p join pg_type t on t.oid = p.kind where t.typtype = 'c'"""
_INDEXES = """select i.indrelid::bigint, i.indisprimary, i.indisreplident,
i.indisvalid and i.indimmediate and i.indpred is null and i.indexprs is null,
array(select a.attname::text from generate_series(0, i.indnkeyatts - 1) k
join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[k] order by k)
from pg_index i where i.indisunique and i.indrelid = any(%s::oid[])"""


@dataclass(frozen=True)
class CatalogColumn:
    """`number`: another one when a column is dropped and added again; `made`: the transaction that altered it last.

    `is_filled`: rows from before the column have a value that stands in the catalog. `meaning`: labels and attributes
    of its type, which can change without the column.
    """

    name: str
    number: int
    generated: str
    kind: str
    is_required: bool
    made: str
    is_filled: bool = False
    meaning: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Index:
    """A unique one; `is_plain`: each row is in it, by columns alone."""

    is_primary: bool
    is_identity: bool
    is_plain: bool
    columns: tuple[str, ...]


@dataclass(frozen=True)
class CatalogTable:
    """`kind`, `persistence`, `identity`: letters of pg_class; `file`: its relfilenode, another one after each rewrite.

    `leaves`: of a partitioned table, by oid: relfilenode, name in SQL, the transaction that made it a partition, the
    one that changed it last, and whether it was `made` as a partition or `attached`. `published`: oid of its entry in
    the publication, '' without one.
    """

    oid: int
    schema: str
    name: str
    kind: str
    persistence: str
    identity: str
    root: int
    has_children: bool
    is_filtered: bool
    leaves: Mapping[str, Sequence[str]]
    has_other_leaves: bool
    file: str
    published: str
    columns: tuple[CatalogColumn, ...]
    indexes: tuple[Index, ...]

    @property
    def title(self) -> str:
        """`schema.table`."""
        return f"{self.schema}.{self.name}"


def list_tables(connection: Any, source: DatabaseSource) -> tuple[CatalogTable, ...]:  # noqa: ANN401 - psycopg's
    """In the order of their names."""
    meant = [re.compile(pattern_of(one)) for one in source.tables] or [re.compile(".*", re.DOTALL)]
    rows = connection.execute(_TABLES, (source.slot,)).fetchall()
    found = [row for row in rows if any(one.fullmatch(f"{row[1]}.{row[2]}") for one in meant)]
    oids = {row[0] for row in found}
    columns: dict[int, list[CatalogColumn]] = defaultdict(list)
    indexes: dict[int, list[Index]] = defaultdict(list)
    meanings: dict[tuple[int, int], dict[str, str]] = defaultdict(dict)
    for oid, number, name, text in connection.execute(_MEANINGS, (list(oids),)).fetchall():
        meanings[oid, number][name] = text
    for row in connection.execute(_COLUMNS, (list(oids),)).fetchall():
        columns[row[0]].append(CatalogColumn(*(*row[1:], meanings.get((row[0], row[2]), {}))))
    for oid, is_primary, is_identity, is_plain, names in connection.execute(
        _INDEXES, (list(oids),)
    ).fetchall():
        indexes[oid].append(Index(is_primary, is_identity, is_plain, tuple(names)))
    return tuple(
        CatalogTable(*(*row, tuple(columns[row[0]]), tuple(indexes[row[0]])))
        for row in found
        if row[6] not in oids
    )


def key_of(table: CatalogTable) -> tuple[str, ...]:
    """The primary key; without one the only unique index, if each row is in it and deletes carry its columns."""
    primary = next((one for one in table.indexes if one.is_primary), None)
    others = [one for one in table.indexes if not one.is_primary]
    required = {one.name for one in table.columns if one.is_required}
    chosen = primary or (others[0] if len(others) == 1 else None)
    if chosen is None or not chosen.is_plain or not required.issuperset(chosen.columns):
        return ()
    is_sent = table.identity == "f" or chosen.is_identity or (table.identity == "d" and chosen.is_primary)
    return chosen.columns if is_sent else ()


def why_unfit(table: CatalogTable, version: int) -> TablestoreError | None:
    """`version`: of the server."""
    what = f"table {table.title} cannot be followed"
    if not key_of(table):
        return FixRequest(
            "TS1491",
            what,
            why="it has no primary key by which the database's log identifies its updates and deletes, nor one unique "
            "index that all rows are in and that is its replica identity",
            fix=f"alter table {table.title} add primary key (…), then sync with --resnapshot {table.title}. A first "
            "start can leave it out: name the others with --table",
        )
    if (trouble := _trouble(table, version)) is None:
        return None
    return FixRequest("TS1491", what, why=trouble, fix="leave it out: name other tables with --table")


def _trouble(table: CatalogTable, version: int) -> str | None:
    """What of it the database's log, or Debezium, does not tell."""
    hidden = [
        one.name
        for one in table.columns
        if one.generated == "v" or (one.generated == "s" and version < _GENERATED_SENT)
    ]
    left_out = [one.name for one in table.columns if one.kind in _LEFT_OUT]
    if table.kind == "f":
        return "it is a foreign table: its changes are not in this database's log"
    if table.persistence == "u":
        return "it is unlogged: its changes are not in the database's log"
    if table.has_children:
        return "other tables inherit from it: a query of it has their rows, its changes have not"
    if table.has_other_leaves:
        return "a partition of it is foreign or unlogged: changes there are not in the database's log"
    if table.is_filtered:
        return "row security hides rows of it from this user"
    if hidden:
        return f"the database's log has no values of the generated columns {', '.join(hidden)}"
    if left_out:
        return f"Debezium leaves out columns of the types {', '.join(_LEFT_OUT)}: {', '.join(left_out)}"
    return None


def find_risky(table: CatalogTable) -> tuple[str, ...]:
    """Of types of which Debezium cannot say that a large value stayed as it was; replica identity full says it."""
    if table.identity == "f":
        return ()
    return tuple(
        one.name
        for one in table.columns
        if (one.kind.endswith("[]") and not _TOLD_ARRAYS.fullmatch(one.kind))
        or one.kind.startswith("bit varying")
    )


def quoted(names: Sequence[str]) -> str:
    return ".".join('"' + one.replace('"', '""') + '"' for one in names)
