"""What a sync concludes from PostgreSQL's catalog about values that replication did not send: on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration_tests.ingest.databases import KNOWN, fresh
from tablestore_demo.demo_postgres import Postgres
from tablestore_engine.errors import RetryError
from tablestore_engine.postgres.catalog_tables import list_tables
from tablestore_engine.postgres.connector_state import SourceRecord, follow_as_is
from tablestore_engine.postgres.postgres_session import find_identity, open_database
from tablestore_engine.postgres.publication_tables import look_at_tables, make_publication, publish
from tablestore_engine.postgres.replication_progress import wait_ended
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spi import parse_source
from tests.doses import cases

TABLE = """
create schema {s};
create type {s}.mood as enum ('sad', 'glad');
create type {s}.pair as (a int, b text);
create table {s}.t (id int primary key, v text, n numeric(6,2), z timestamptz, c varchar(10), i int, j int, m {s}.mood,
  moods {s}.mood[], k {s}.pair, g int generated always as (j * 2) stored);
insert into {s}.t (id, v, n, z, c, i, j, m, moods, k)
  select g, 'v' || g, 1.25, '2026-01-01 12:00:00.123456+00', 'abcdef', g, g, 'sad', array['glad']::{s}.mood[],
  row(g, 'x')::{s}.pair
  from generate_series(1, 5) g;
create table {s}.p (id int primary key, v int) partition by range (id);
create table {s}.p_1 partition of {s}.p for values from (0) to (100);
create table {s}.p_2 partition of {s}.p for values from (100) to (200);
create table {s}.alone (id int primary key, v int);
insert into {s}.alone values (201);
insert into {s}.p values (1), (101)"""
NOT_SENT = {
    "a rename and a rewrite": "alter table {s}.t rename v to w; alter table {s}.t alter i type bigint",
    "a rename and VACUUM FULL": "alter table {s}.t rename v to w; vacuum full {s}.t",
    "two names swapped and a rewrite": "alter table {s}.t rename v to x; alter table {s}.t rename c to v; "
    "alter table {s}.t rename x to c; cluster {s}.t using t_pkey",
    "a column added again and a rewrite": "alter table {s}.t drop v; alter table {s}.t add v text default 'new'; "
    "alter table {s}.t alter n type numeric(8,3)",
    "a default and a rewrite": "alter table {s}.t add w int default 7; alter table {s}.t alter i type bigint",
    "a volatile default": "alter table {s}.t add w double precision default random()",
    "fewer digits": "alter table {s}.t alter n type numeric(6,1)",
    "fewer fractions of a second": "alter table {s}.t alter z type timestamptz(0)",
    "a shorter text": "alter table {s}.t alter c type varchar(3) using left(c, 3)",
    "another type of the same bytes": "alter table {s}.t alter i type oid",
    "the same type with other values": "alter table {s}.t alter v type text using upper(v)",
    "a wider type with other values": "alter table {s}.t alter i type bigint using i * 2",
    "another expression of a generated column": "alter table {s}.t alter g set expression as (j * 3)",
    "a label renamed": "alter type {s}.mood rename value 'sad' to 'blue'",
    "a label of an array renamed": "alter type {s}.mood rename value 'glad' to 'happy'",
    "an attribute added to a type": "alter type {s}.pair add attribute d int",
}
SENT = {
    "a rewrite": "vacuum full {s}.t; cluster {s}.t using t_pkey",
    "TRUNCATE": "truncate {s}.t; insert into {s}.t (id) values (1)",
    "a column without a default": "alter table {s}.t add w int; insert into {s}.t (id, w) values (9, 9)",
    "a wider text": "alter table {s}.t alter c type varchar(20)",
    "a text without a length": "alter table {s}.t alter c type text",
    "more digits before the point": "alter table {s}.t alter n type numeric(8,2)",
    "more fractions of a second than there are": "alter table {s}.t alter z type timestamptz(6)",
    "constraints and statistics": "alter table {s}.t alter v set not null; alter table {s}.t alter v set default 'd'; "
    "alter table {s}.t alter v set statistics 7; analyze {s}.t; create index on {s}.t (v)",
    "a label added": "alter type {s}.mood add value 'calm'",
    "a column dropped": "alter table {s}.t drop v",
}


class Followed:
    """A source with one table, as it stands in the record after each look."""

    def __init__(self, postgres: Postgres, name: str) -> None:
        self.name, self._postgres = name, postgres
        self.source = parse_source(name, postgres.url, [f"{name}.t", f"{name}.p"])
        with open_database(self.source, KNOWN) as connection:
            here = find_identity(connection)
            make_publication(connection, self.source, here.version)
            tables = list_tables(connection, self.source)
            assert [publish(connection, self.source, one) for one in tables] == [None, None]
            followed = {one.title: follow_as_is(one) for one in tables}
        self.record = SourceRecord(
            "postgres", self.source.tables, here.system, here.timeline, "kafka", None, followed
        )

    def run(self, statements: str) -> None:
        """Each a transaction of its own."""
        self._postgres.run(*statements.format(s=self.name).split(";"))

    def look(self, table: str = "t") -> str | None:
        """As a sync does; why the table cannot be brought up to now, None where it can."""
        with open_database(self.source, KNOWN) as connection:
            found = look_at_tables(connection, self.source, self.record, find_identity(connection).version)
        self.record = self.record.with_followed(found.followed)
        error = found.trouble.get(f"{self.name}.{table}")
        assert error is None or error.code == "TS1495"
        return None if error is None else error.why


@pytest.fixture
def followed(postgres: Postgres) -> Iterator[Followed]:
    """One table, followed."""
    name = fresh()
    postgres.run(*TABLE.format(s=name).split(";"))
    source = Followed(postgres, name)
    assert source.look() is None
    yield source
    postgres.run(f"drop publication tablestore_{name}", f"drop schema {name} cascade")


@pytest.mark.parametrize("statements", cases(list(NOT_SENT.values()), 6), ids=NOT_SENT)
def test_a_column_whose_stored_values_changed_is_refused_until_every_row_is_sent(
    followed: Followed, statements: str
) -> None:
    """TS1495 at each sync, until an update has sent every row; then the table goes on."""
    followed.run(statements)
    assert followed.look() is not None
    followed.run("update {s}.t set i = i where id <= 4")
    assert followed.look() is not None
    followed.run("update {s}.t set i = i")
    assert followed.look() is None
    assert followed.look() is None


@pytest.mark.parametrize("statements", cases(list(SENT.values()), 5), ids=SENT)
def test_a_change_that_leaves_stored_values_is_accepted(followed: Followed, statements: str) -> None:
    """Columns keep their values, or replication has sent them: nothing is asked of the user."""
    followed.run(statements)
    assert followed.look() is None


def test_a_dropped_column_that_is_added_after_a_sync_is_refused(followed: Followed) -> None:
    """The warehouse still has the values of the dropped one."""
    followed.run("alter table {s}.t drop v")
    assert followed.look() is None
    followed.run("alter table {s}.t add v text")
    assert followed.look() is not None
    followed.run("update {s}.t set i = i")
    assert followed.look() is None


def test_a_name_that_comes_back_after_a_sync_is_refused(followed: Followed) -> None:
    """A column is renamed, all its rows are sent, and it gets its old name again: the old column has old values."""
    followed.run("alter table {s}.t rename v to w")
    assert followed.look() is not None
    followed.run("update {s}.t set i = i")
    assert followed.look() is None
    followed.run("alter table {s}.t rename w to v")
    assert followed.look() is not None


def test_a_default_of_an_older_transaction_is_refused(followed: Followed, postgres: Postgres) -> None:
    """A row that is written after the ALTER's transaction began, and before its ALTER, has a younger transaction id:
    its value of the default was sent by nobody all the same.
    """
    with postgres.connect() as migration, migration.transaction():
        migration.execute("select pg_current_xact_id()")
        followed.run("truncate {s}.t")
        assert followed.look() is None
        followed.run("insert into {s}.t (id) values (1)")
        migration.execute(f"alter table {followed.name}.t add w int default 7")
    assert followed.look() is not None


def test_a_transaction_that_goes_on_is_named(followed: Followed, postgres: Postgres) -> None:
    """TS1591 while a transaction with an id is open; the error says which process has it."""

    def wait() -> None:
        wait_ended(followed.source, KNOWN, SYSTEM, check=lambda: None, seconds=0.3)

    wait()
    with postgres.connect() as other:
        with other.transaction():
            other.execute("select pg_current_xact_id()")
            with pytest.raises(RetryError, match=r"TS1591.*(\n.*)*process \d+ since"):
                wait()
        wait()


def test_a_table_taken_out_of_the_publication_for_a_while_is_refused(followed: Followed) -> None:
    """Changes in between were not sent, although the publication has the table now."""
    name = f"tablestore_{followed.name}"
    followed.run(f"alter publication {name} drop table {{s}}.t; delete from {{s}}.t where id = 1")
    followed.run(f"alter publication {name} add table {{s}}.t")
    assert followed.look() is not None


PARTITIONS = {
    "a default": "alter table {s}.p add w int default 7",
    "the same type with other values": "alter table {s}.p alter v type int using v + 1",
    "a table with rows attached": "alter table {s}.p attach partition {s}.alone for values from (200) to (300)",
}
NEVER_SENT = {
    "a partition truncated": "truncate {s}.p_1",
    "each partition truncated": "truncate {s}.p_1; truncate {s}.p_2",
    "a partition detached": "alter table {s}.p detach partition {s}.p_1",
}
SENT_PARTITIONS = {
    "TRUNCATE of the whole": "truncate {s}.p; insert into {s}.p values (2)",
    "a partition made": "create table {s}.p_3 partition of {s}.p for values from (200) to (300); "
    "insert into {s}.p values (222)",
    "a column without a default": "alter table {s}.p add w int; insert into {s}.p values (3, 3, 3)",
}


@pytest.mark.parametrize("statements", cases(list(PARTITIONS.values()), 1), ids=PARTITIONS)
def test_a_partitioned_table_with_values_that_were_not_sent_is_refused(
    followed: Followed, statements: str
) -> None:
    """TS1495, until an update has sent every row."""
    followed.run(statements)
    assert followed.look("p") is not None
    followed.run("update {s}.p set v = v where id < 100")
    assert followed.look("p") is not None
    followed.run("update {s}.p set v = v")
    assert followed.look("p") is None


@pytest.mark.parametrize("statements", NEVER_SENT.values(), ids=NEVER_SENT)
def test_a_partition_whose_rows_went_unsent_is_refused(followed: Followed, statements: str) -> None:
    """TS1495: no update sends deletes."""
    followed.run(statements)
    assert followed.look("p") is not None
    followed.run("update {s}.p set v = v")
    assert followed.look("p") is not None


@pytest.mark.parametrize("statements", SENT_PARTITIONS.values(), ids=SENT_PARTITIONS)
def test_a_partitioned_table_whose_changes_were_sent_is_accepted(followed: Followed, statements: str) -> None:
    """Nothing is asked of the user."""
    followed.run(statements)
    assert followed.look("p") is None
