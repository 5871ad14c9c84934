"""Keyed streaming models under updates and deletes: retractions are applied by key, or the model is refused."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import TableSpec, WriteSpec
from tests.doses import case_rows

KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "1"}))
LOOKUP = WriteSpec(table=TableSpec(primary_key=("v",), options={"bucket": "1"}))
ADDED = WriteSpec(table=TableSpec(options={"bucket": "-1"}))
SOURCES = "sources: [{name: raw, schema: demo, tables: [{name: feed}, {name: names}, {name: plain}]}]"
FEED = "{{ stream(source('raw', 'feed')) }}"
NAMES = "{{ source('raw', 'names') }}"
HEAD = "{{ config(materialized='streaming', unique_key='id') }}\n"
JOINED = HEAD + f"select f.id, n.name, _row_kind, _snapshot_id from {FEED} f join {NAMES} n on n.v = f.v"
Row = tuple[int, str]


@pytest.fixture
def feed(shop: Shop) -> Shop:
    """A keyed stream and a lookup table."""
    shop.write("models/feed.yml", SOURCES)
    put(shop, (1, "a"), (2, "b"), (3, "c"))
    name(shop, ("a", "ann"), ("b", "bob"), ("c", "cid"))
    return shop


def put(shop: Shop, *rows: Row) -> None:
    """Upsert rows of the stream."""
    made = pa.table({"id": [one for one, _ in rows], "v": [v for _, v in rows]})
    shop.engine.write("demo.feed", made, KEYED)


def name(shop: Shop, *rows: tuple[str, str]) -> None:
    """Upsert rows of the lookup table."""
    made = pa.table({"v": [v for v, _ in rows], "name": [called for _, called in rows]})
    shop.engine.write("demo.names", made, LOOKUP)


def drop(shop: Shop, table: str, where: str) -> None:
    """Delete rows of a table."""
    shop.engine.sql(f"delete from demo.{table} where {where}")


def run(shop: Shop, text: str, *more: str, ok: bool = True) -> None:
    """`dbt run` of the model `m`."""
    shop.write("models/m.sql", text)
    shop.dbt("run", "--select", "m", *more, ok=ok)


def found(shop: Shop, columns: str = "*") -> Sequence[tuple[object, ...]]:
    """The rows of the model."""
    return sorted(shop.rows(f"select {columns} from demo.m"))


def test_retraction_with_lookup_row_gone_deletes_the_model_row(feed: Shop) -> None:
    """Deletes and updates of the stream reach the model although their rows no longer join; a lookup row alone neither
    removes a row (3) nor brings one back, and a stream row that changes then joins.
    """
    run(feed, JOINED)
    assert found(feed) == [(1, "ann"), (2, "bob"), (3, "cid")]
    drop(feed, "names", "v in ('a', 'b', 'c')")
    drop(feed, "feed", "id = 1")
    put(feed, (2, "x"))
    run(feed, JOINED)
    assert found(feed) == [(3, "cid")]
    name(feed, ("x", "xia"), ("a", "ann"))
    run(feed, JOINED)
    assert found(feed) == [(3, "cid")]
    put(feed, (2, "a"), (1, "x"))
    run(feed, JOINED)
    assert found(feed) == [(1, "xia"), (2, "ann"), (3, "cid")]


def test_retraction_with_changed_filter_result_deletes_the_model_row(feed: Shop) -> None:
    """A filter whose result for the same row differs between two runs (here by a control table, as by the current
    time) hides no retraction; of the key's other columns the earlier value is deleted when it moves.
    """
    text = HEAD.replace("'id'", "['id', 'part']") + (
        f"select id, upper(v) as part, _row_kind, _snapshot_id from {FEED} "
        f"where v >= (select min(v) from {NAMES}) or id > year(current_timestamp())"
    )
    run(feed, text)
    assert found(feed) == [(1, "A"), (2, "B"), (3, "C")]
    drop(feed, "names", "v in ('a', 'b')")
    drop(feed, "feed", "id = 1")
    put(feed, (2, "d"), (3, "b"))
    run(feed, text)
    assert found(feed) == [(2, "D")]


@pytest.mark.parametrize(
    ("text", "clause"),
    case_rows([
        (
            "{{ config(materialized='streaming', unique_key=['id', 'name']) }} "
            + JOINED.removeprefix(HEAD),
            "name of unique_key",
        ),
        (
            HEAD.replace("'id'", "'v'") + f"select v, id, _row_kind, _snapshot_id from {FEED} where id < 9",
            "the primary key (id) of demo.feed",
        ),
        (
            HEAD + f"select id + cast(rand() * 9 as int) as id, id as i, _row_kind, _snapshot_id from {FEED}",
            "id of unique_key",
        ),
        (
            HEAD.replace("'id'", "['id', 'at']")
            + f"select id, current_date() as at, _row_kind, _snapshot_id from {FEED}",
            "at of unique_key",
        ),
        (HEAD + f"select id, v, '+U' as _row_kind, _snapshot_id from {FEED}", "_row_kind of its result"),
        (HEAD + f"select id, v, _row_kind, id as _snapshot_id from {FEED}", "_snapshot_id of its result"),
        (HEAD + f"select id, v, _row_kind, _snapshot_id from {FEED} where _row_kind <> '-D'", "a filter on _row_kind"),
        (
            HEAD.replace("'id'", "'id', merge_update_columns=['v']")
            + f"select id, v, _row_kind, _snapshot_id from {FEED}",
            "merge_update_columns",
        ),
        (
            HEAD.replace("'id'", "'id', sequence_field='v'")
            + f"select id, v, _row_kind, _snapshot_id from {FEED}",
            "sequence_field",
        ),
    ], 2),
)  # fmt: skip
def test_model_whose_retractions_cannot_be_proven_is_refused(feed: Shop, text: str, clause: str) -> None:
    """TS1867 with the clause, before anything is made."""
    run(feed, text, ok=False)
    assert "TS1867" in feed.log
    assert clause in feed.log
    assert feed.engine.find_table("demo.m") is None


def test_proof_does_not_see_the_time_of_a_query_that_leaves_files_out(
    feed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where files are left out the current time is a literal; a proof over that would hold for this day alone."""
    monkeypatch.setattr("tablestore_engine.spark.plan_pruning._FILES_WORTH", 1)
    put(feed, (900, "z"))  # a file that can be left out
    text = f"select id, current_date() as at, _row_kind, _snapshot_id from {FEED} where id < 9"
    run(feed, HEAD.replace("'id'", "['id', 'at']") + text, ok=False)
    assert "at of unique_key" in feed.log


def test_retraction_of_an_input_without_primary_key_is_refused(feed: Shop) -> None:
    """Rows of a keyless input have no identity: additions are put by key, a delete ends the run (TS1866)."""
    feed.engine.write("demo.plain", pa.table({"id": [1, 2], "v": ["a", "b"]}), ADDED)
    text = JOINED.replace("'feed'", "'plain'")
    run(feed, text)
    feed.engine.write("demo.plain", pa.table({"id": [2], "v": ["c"]}), ADDED)
    run(feed, text)
    assert found(feed) == [(1, "ann"), (2, "cid")]
    drop(feed, "plain", "id = 1")
    run(feed, text, ok=False)
    assert "TS1866" in feed.log
    assert found(feed) == [(1, "ann"), (2, "cid")]


def test_retraction_in_a_model_without_key_is_refused(feed: Shop) -> None:
    """A table without a key cannot delete: an update that a join hides ends the run (TS1866), nothing is written."""
    text = JOINED.replace(", unique_key='id'", "")
    run(feed, text)
    drop(feed, "names", "v = 'a'")
    drop(feed, "feed", "id = 1")
    run(feed, text, ok=False)
    assert "TS1866" in feed.log


def test_row_kinds_all_applies_the_query_as_written(feed: Shop) -> None:
    """row_kinds='all' says that the query itself decides what a kind means: here deleted rows stay."""
    text = HEAD.replace("'id'", "'id', row_kinds='all'") + (
        f"select id, v, _row_kind, _snapshot_id from {FEED} where _row_kind <> '-D'"
    )
    run(feed, text)
    drop(feed, "feed", "id = 1")
    put(feed, (2, "z"))
    run(feed, text)
    assert found(feed) == [(1, "a"), (2, "z"), (3, "c")]


def test_join_with_two_partners_is_an_error(feed: Shop) -> None:
    """Two rows of one key in one snapshot are refused (TS1601), and nothing is written: neither is the newest."""
    text = JOINED.replace("n.v = f.v", "n.v <> f.v and n.v < 'c'")
    drop(feed, "feed", "id = 3")
    run(feed, text)
    assert found(feed) == [(1, "bob"), (2, "ann")]
    put(feed, (3, "c"))
    run(feed, text, ok=False)
    assert "TS1601" in feed.log
    assert found(feed) == [(1, "bob"), (2, "ann")]


@pytest.mark.nightly  # by day retractions above
def test_retraction_of_a_row_that_never_had_a_key_changes_nothing(feed: Shop) -> None:
    """A stream row with NULL in a key column never joined; its update and delete do not stop the model."""
    feed.engine.sql("insert into demo.feed values (4, null)")
    text = JOINED.replace("unique_key='id'", "unique_key=['id', 'v']").replace("f.id,", "f.id, f.v,")
    run(feed, text)
    put(feed, (4, "a"), (1, "b"))
    run(feed, text)
    assert found(feed) == [(1, "b", "bob"), (2, "b", "bob"), (3, "c", "cid"), (4, "a", "ann")]


def test_column_dropped_and_added_again_ends_the_run(feed: Shop) -> None:
    """TS2011: old rows would stay, and no later delete of their stream row would reach them. A column that the query
    does not read, and a full refresh, are fine.
    """
    feed.engine.sql("alter table demo.feed add column w int")
    text = HEAD + f"select id, v, _row_kind, _snapshot_id from {FEED} where v <> 'b'"
    run(feed, text)
    feed.engine.sql("alter table demo.feed drop column w")
    feed.engine.sql("alter table demo.feed add column w int")
    feed.engine.sql("update demo.feed set v = 'd' where id = 1")
    run(feed, text)
    assert found(feed) == [(1, "d"), (3, "c")]
    feed.engine.sql("alter table demo.feed drop column v")
    feed.engine.sql("alter table demo.feed add column v string")
    drop(feed, "feed", "id = 1")
    run(feed, text, ok=False)
    assert "TS2011" in feed.log
    run(feed, text, "--full-refresh")
    assert found(feed) == []


@pytest.mark.nightly  # by day the column that is dropped and added again
def test_field_dropped_and_added_again_ends_the_run(feed: Shop) -> None:
    """TS2011 also for fields of structs, in arrays and maps, also when their names are swapped; and under changes(), of
    which a full refresh is the way out too.
    """
    made = (
        "create table demo.plain (id int not null, s struct<a: int, b: int>, l array<struct<a: int, b: int>>, "
        "m map<string, struct<a: int, b: int>>) tblproperties ('primary-key' = 'id')"
    )
    row = "named_struct('a', 1, 'b', 2), array(named_struct('a', 1, 'b', 2)), map('k', named_struct('a', 1, 'b', 2))"
    stream, changes = "{{ stream(source('raw', 'plain')) }}", "{{ changes(source('raw', 'plain')) }}"
    streamed = HEAD + f"select id, s.b + l[0].a + m['k'].a as v, _row_kind, _snapshot_id from {stream}"
    changed = streamed.replace("streaming", "incremental").replace(stream, changes)
    for text, field in ((streamed, "s.b"), (streamed, "l.element.a"), (changed, "m.value.a"), (changed, "s")):
        feed.engine.sql("drop table if exists demo.plain")
        feed.engine.sql(made)
        feed.engine.sql(f"insert into demo.plain values (1, {row}), (2, {row})")
        run(feed, text, "--full-refresh")
        run(feed, text)
        if field == "s.b":  # a and b exchange their names
            for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
                feed.engine.sql(f"alter table demo.plain rename column s.{old} to {new}")
        else:
            kind = "struct<a: int, b: int>" if field == "s" else "int"
            feed.engine.sql(f"alter table demo.plain drop column {field}")
            feed.engine.sql(f"alter table demo.plain add column {field} {kind}")
        feed.engine.sql("delete from demo.plain where id = 2")
        run(feed, text, ok=False)
        assert f"TS2011 model m cannot resume: {field} of demo.plain" in feed.log
        run(feed, text, "--full-refresh")
        assert [one for one, *_ in found(feed)] == [1]


def test_column_exchanged_after_the_snapshot_of_the_position_expired_ends_the_run(feed: Shop) -> None:
    """TS2011: the position itself says by which schema the rows were read."""
    feed.engine.sql(
        "create table demo.plain (id int not null, v string) tblproperties ('primary-key' = 'id', "
        "'tablestore.expire-grace' = '0 s')"
    )
    feed.engine.sql("insert into demo.plain values (1, 'a'), (2, 'b')")
    text = HEAD + "select id, v, _row_kind, _snapshot_id from {{ stream(source('raw', 'plain')) }}"
    run(feed, text, "--full-refresh")
    feed.engine.sql("alter table demo.plain drop column v")
    feed.engine.sql("alter table demo.plain add column v string")
    feed.engine.sql("delete from demo.plain where id = 2")
    feed.engine.table("demo.plain").expire(keep=1, older_than_ms=0)
    assert feed.engine.table("demo.plain").snapshot_ids()[0] > 1
    run(feed, text, ok=False)
    assert "TS2011 model m cannot resume: v of demo.plain" in feed.log
    assert found(feed) == [(1, "a"), (2, "b")]
