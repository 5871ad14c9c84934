"""The SQL statements that we know, as values; `parser.py` makes them from text.

INVARIANT  query and expression texts are exact slices of the user's text: nothing in them is rewritten here.
"""

from __future__ import annotations

from dataclasses import dataclass

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TableName:
    """A one- or two-part name."""

    database: str | None
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}" if self.database else self.table


@dataclass(frozen=True)
class ColumnDefinition:
    """`name TYPE [NOT NULL] [DEFAULT expr] [COMMENT text]`; `type_text` is Spark's type syntax; `parents`: the
    names before the last one of a field inside a column.
    """

    name: str
    type_text: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateTable:
    """CREATE [OR REPLACE] TABLE, with columns or AS query or both absent (then refused later)."""

    name: TableName
    replace: bool = False
    if_not_exists: bool = False
    columns: tuple[ColumnDefinition, ...] = ()
    primary_key: tuple[str, ...] = ()
    checks: Pairs = ()
    provider: str | None = None
    partition_by: tuple[str, ...] = ()
    comment: str | None = None
    properties: Pairs = ()
    query: str | None = None


@dataclass(frozen=True)
class CreateView:
    """CREATE [OR REPLACE] VIEW; `columns` are (name, comment or '')."""

    name: TableName
    query: str
    replace: bool = False
    if_not_exists: bool = False
    columns: Pairs = ()
    comment: str | None = None
    properties: Pairs = ()


@dataclass(frozen=True)
class CreateFunction:
    """CREATE [OR REPLACE] FUNCTION; `definition` is all that follows the name. `returns`: None for Spark to infer it.

    `is_deterministic` is what is declared; None: nothing is.
    """

    name: TableName
    definition: str
    body: str
    parameters: tuple[ColumnDefinition, ...] = ()
    returns: str | None = None
    is_table: bool = False
    is_deterministic: bool | None = None
    comment: str | None = None
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropFunction:
    name: TableName
    if_exists: bool = False


@dataclass(frozen=True)
class DescribeFunction:
    name: TableName
    extended: bool = False


@dataclass(frozen=True)
class Drop:
    """DROP TABLE | VIEW [IF EXISTS]."""

    kind: str
    name: TableName
    if_exists: bool = False


@dataclass(frozen=True)
class Insert:
    """INSERT INTO | OVERWRITE; `partition` maps column to literal text, or None for a dynamic one. `head`: its text
    before the query.
    """

    name: TableName
    query: str
    overwrite: bool = False
    partition: tuple[tuple[str, str | None], ...] = ()
    columns: tuple[str, ...] = ()
    by_name: bool = False
    head: str = ""


@dataclass(frozen=True)
class Delete:
    """DELETE FROM; without a condition (`all_rows`) nothing of it needs Spark. `text`: the whole statement."""

    name: TableName
    text: str
    all_rows: bool = False


@dataclass(frozen=True)
class Update:
    """UPDATE … SET; Spark reads its whole `text`."""

    name: TableName
    text: str


@dataclass(frozen=True)
class Merge:
    """MERGE INTO; Spark reads its whole `text`."""

    name: TableName
    text: str


@dataclass(frozen=True)
class Truncate:
    name: TableName


@dataclass(frozen=True)
class Restore:
    """RESTORE TABLE … TO VERSION AS OF (snapshot id or tag) | TIMESTAMP AS OF (a literal of the session's zone)."""

    name: TableName
    snapshot: int | None = None
    tag: str | None = None
    timestamp: str | None = None


@dataclass(frozen=True)
class RenameTo:
    """ALTER TABLE … RENAME TO."""

    new_name: TableName


@dataclass(frozen=True)
class AddColumns:
    """ALTER TABLE … ADD COLUMN(S), at the end."""

    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True)
class DropColumns:
    """ALTER TABLE … DROP COLUMN(S). `nested`: fields inside columns, by all their names."""

    names: tuple[str, ...]
    if_exists: bool = False
    nested: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class RenameColumn:
    """ALTER TABLE … RENAME COLUMN. `parents`: the names before `old` of a field inside a column."""

    old: str
    new: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlterColumn:
    """ALTER COLUMN: exactly one of type, comment, nullable, default is given. `parents` as of RenameColumn.

    default   the SQL of SET DEFAULT; empty: DROP DEFAULT
    """

    column: str
    type_text: str | None = None
    comment: str | None = None
    nullable: bool | None = None
    parents: tuple[str, ...] = ()
    default: str | None = None


@dataclass(frozen=True)
class SetProperties:
    """ALTER TABLE … SET TBLPROPERTIES."""

    properties: Pairs


@dataclass(frozen=True)
class UnsetProperties:
    """ALTER TABLE … UNSET TBLPROPERTIES [IF EXISTS]."""

    keys: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class DropPartitions:
    """ALTER TABLE … DROP [IF EXISTS] PARTITION (…), …; `where`: a filter of the partition columns for each."""

    where: tuple[str, ...]
    if_exists: bool = False


AlterAction = (
    RenameTo
    | AddColumns
    | DropColumns
    | DropPartitions
    | RenameColumn
    | AlterColumn
    | SetProperties
    | UnsetProperties
)


@dataclass(frozen=True)
class Alter:
    """ALTER TABLE | VIEW with one action."""

    kind: str
    name: TableName
    action: AlterAction


@dataclass(frozen=True)
class CommentOn:
    """COMMENT ON TABLE | SCHEMA … IS text | NULL."""

    kind: str
    name: TableName
    comment: str | None


@dataclass(frozen=True)
class CreateSchema:
    name: str
    if_not_exists: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class DropSchema:
    """DROP SCHEMA | DATABASE [RESTRICT | CASCADE]."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Show:
    """SHOW TABLES | TABLE EXTENDED | VIEWS | FUNCTIONS | SCHEMAS | COLUMNS | TBLPROPERTIES | CREATE TABLE, from our
    catalog.
    """

    kind: str
    database: str | None = None
    name: TableName | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class Describe:
    name: TableName
    extended: bool = False


@dataclass(frozen=True)
class DescribeHistory:
    name: TableName
    limit: int | None = None


@dataclass(frozen=True)
class Optimize:
    """OPTIMIZE name [WHERE …] [ZORDER BY (…)]; `has_filter`: of files, which has no effect here."""

    name: TableName
    has_filter: bool = False
    z_order: tuple[str, ...] = ()


@dataclass(frozen=True)
class Analyze:
    """ANALYZE TABLE name COMPUTE STATISTICS [FOR ALL COLUMNS | FOR COLUMNS a, b]; `columns` None: all."""

    name: TableName
    columns: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class Vacuum:
    """VACUUM name [RETAIN n HOURS] [DRY RUN]."""

    name: TableName
    retain_hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class NoEffect:
    """A statement that another engine needs; `why` it has nothing to do here."""

    verb: str
    why: str


@dataclass(frozen=True)
class Query:
    """Rows, nothing changed."""

    text: str


@dataclass(frozen=True)
class SessionSql:
    """A statement of the Spark session itself; none of our tables can be changed by it."""

    text: str


Statement = (
    CreateTable | CreateView | Drop | Insert | Delete | Update | Merge | Truncate | Restore | Alter
    | CommentOn | CreateSchema | DropSchema | Show | Describe | DescribeHistory | Optimize | Vacuum
    | Analyze | NoEffect | Query | SessionSql | CreateFunction | DropFunction | DescribeFunction
)  # fmt: skip
