"""Nodes built from a parent that waits for its tests read its staged rows, and are published with it or behind it."""

from __future__ import annotations

import shutil

import pytest

from integration_tests.adapter.conftest import Shop
from tests.doses import cases

# `known` is no ancestor of the nodes below `src`: dbt runs them before this test, which is a gate of `src`
GATES = """
models:
  - name: src
    columns:
      - name: id
        data_tests:
          - relationships: {arguments: {to: ref('known'), field: id}}
"""
HISTORY = (
    "{{% snapshot {name} %}} {{{{ config(unique_key='id', strategy='check', check_cols=['n'], {config}) }}}}"
    " select * from {{{{ ref('{parent}') }}}} {{% endsnapshot %}}"
)
ALL = "select id, n, dbt_valid_to is null as is_open from demo.{} order by id, dbt_valid_from"


@pytest.fixture
def gated(shop: Shop) -> Shop:
    """Model `src`, whose gate runs behind its children, by one thread; ids 1 to 9 are known, others are red."""
    shop.output["threads"] = 1
    shutil.rmtree(shop.folder / "models")
    shutil.rmtree(shop.folder / "seeds")
    shop.write("models/gates.yml", GATES)
    shop.write("models/known.sql", "{{ config(materialized='table') }} select explode(sequence(1, 9)) as id")
    return shop


def source(
    shop: Shop, *rows: tuple[int, str], config: str = "materialized='tablestore', primary_key='id'"
) -> None:
    """What the next build of `src` gives."""
    values = ", ".join(f"({number}, '{text}')" for number, text in rows)
    shop.write("models/src.sql", f"{{{{ config({config}) }}}} select * from values {values} as t(id, n)")


def history(shop: Shop, name: str = "s", parent: str = "src", config: str = "") -> None:
    """A dbt snapshot of `parent`."""
    shop.write(f"snapshots/{name}.sql", HISTORY.format(name=name, parent=parent, config=config))


@pytest.mark.parametrize("threads", cases([2, 1], 1))
def test_snapshot_of_staged_model_is_published_in_same_build(gated: Shop, threads: int) -> None:
    """The first build and the later ones: the snapshot has the versions that its parent shows after the same build,
    also when two threads publish the parent while the snapshot is built.
    """
    gated.output["threads"] = threads
    history(gated)
    source(gated, (1, "a"), (2, "b"))
    gated.dbt("build")
    assert gated.rows(ALL.format("s")) == [(1, "a", True), (2, "b", True)]
    assert gated.response("s")["published"] is True
    source(gated, (1, "a"), (2, "c"))
    gated.dbt("build")
    assert gated.rows(ALL.format("s")) == [(1, "a", True), (2, "b", False), (2, "c", True)]
    assert gated.engine.staged("demo") == ()


def test_snapshot_of_red_model_waits_with_it(gated: Shop) -> None:
    """The rows of a red parent are in no history; a `dbt retry` with the test green publishes both."""
    history(gated)
    source(gated, (1, "a"))
    gated.dbt("build")
    source(gated, (1, "b"), (12, "x"))
    gated.dbt("build", ok=False)
    assert gated.rows(ALL.format("s")) == [(1, "a", True)]
    assert gated.response("s")["published"] is False
    assert "built from staged rows of demo.src" in gated.response("s")["reason"]
    gated.dbt("retry", ok=False)
    assert gated.rows(ALL.format("s")) == [(1, "a", True)]
    gated.write("models/gates.yml", GATES.replace("field: id}", "field: id}, config: {where: 'id < 10'}"))
    gated.dbt("retry")
    assert gated.rows(ALL.format("s")) == [(1, "a", False), (1, "b", True), (12, "x", True)]
    assert gated.rows("select id, n from demo.src order by 1") == [(1, "b"), (12, "x")]
    assert gated.engine.staged("demo") == ()


@pytest.mark.nightly  # by day the red model below
def test_snapshot_of_red_model_is_made_again_from_published_history(gated: Shop) -> None:
    """The next build replaces both; the red state is in no history, that of the next one is whole."""
    history(gated)
    source(gated, (1, "a"))
    gated.dbt("build")
    source(gated, (12, "x"))
    gated.dbt("build", ok=False)
    source(gated, (1, "c"), (2, "d"))
    gated.dbt("build")
    assert gated.rows(ALL.format("s")) == [(1, "a", False), (1, "c", True), (2, "d", True)]
    assert gated.engine.staged("demo") == ()


@pytest.mark.nightly  # by day test_publishing.py: a first build that is red
def test_first_red_build_leaves_no_snapshot_table(gated: Shop) -> None:
    """Nobody sees a history of rows that never passed; the next build begins it."""
    history(gated)
    source(gated, (12, "x"))
    gated.dbt("build", ok=False)
    assert gated.tables() == set()
    source(gated, (1, "a"))
    gated.dbt("build")
    assert gated.rows(ALL.format("s")) == [(1, "a", True)]


@pytest.mark.nightly  # by day the snapshot of a staged model above; test_whole_run.py
def test_chain_through_snapshot_is_published_in_same_build(gated: Shop) -> None:
    """Model, two snapshots in two schemas, a view and a model of them: all show the state of one build."""
    history(gated)
    history(gated, "s2", config="schema='past'")
    gated.write("models/over.sql", "{{ config(materialized='view') }} select * from {{ ref('s') }}")
    gated.write(
        "models/top.sql",
        "{{ config(materialized='incremental', unique_key='id') }}"
        " select id, max(n) as n, count(*) as versions from"
        " (select id, n from {{ ref('over') }} union all select id, n from {{ ref('s2') }}) group by id",
    )
    for rows, versions in (((1, "a"),), 2), (((1, "b"),), 4):
        source(gated, *rows)
        gated.dbt("build")
        assert gated.rows("select id, n, versions from demo.top") == [(1, rows[0][1], versions)]
        assert {gated.response(name)["published"] for name in ("src", "s", "s2", "top")} == {True}
    source(gated, (12, "x"))
    gated.dbt("build", ok=False)
    assert gated.rows("select id, n, versions from demo.top") == [(1, "b", 4)]
    assert len(gated.engine.staged("demo")) == 3
    source(gated, (1, "c"))
    gated.dbt("build")
    assert gated.rows("select id, n, versions from demo.top") == [(1, "c", 6)]
    assert gated.engine.staged("demo") == gated.engine.staged("demo_past") == ()


@pytest.mark.nightly  # by day tests/unit/adapter/test_publish_decisions.py
def test_red_test_of_snapshot_does_not_keep_a_state_out_of_the_history(gated: Shop) -> None:
    """By default a snapshot's own tests gate nothing; with publish='auto' its red rows wait."""
    history(gated)
    gated.write(
        "snapshots/s.yml",
        "snapshots: [{name: s, columns: [{name: n, data_tests: [{accepted_values: {arguments: {values: [a]}}}]}]}]",
    )
    source(gated, (1, "b"))
    gated.dbt("build", ok=False)
    assert gated.rows(ALL.format("s")) == [(1, "b", True)]
    history(gated, config="publish='auto'")
    source(gated, (1, "c"))
    gated.dbt("build", ok=False)
    assert gated.rows(ALL.format("s")) == [(1, "b", True)]
    assert gated.rows("select n from demo.src") == [("c",)]
    source(gated, (1, "a"))
    gated.dbt("snapshot")
    gated.dbt("build", ok=False)
    history(gated, config="publish='sometimes'")
    gated.dbt("build", ok=False)
    assert "TS1811" in gated.log


@pytest.mark.nightly  # by day the snapshot that waits with its red model
def test_parts_of_a_build_read_what_readers_see(gated: Shop) -> None:
    """`dbt snapshot` beside a waiting parent records published rows; behind a parent published at once, its rows."""
    history(gated)
    source(gated, (1, "a"))
    gated.dbt("build")
    source(gated, (12, "x"))
    gated.dbt("build", ok=False)
    gated.dbt("snapshot")
    gated.dbt("build", "--select", "s")
    assert gated.rows(ALL.format("s")) == [(1, "a", True)]
    gated.dbt("run")
    gated.dbt("snapshot")
    assert gated.rows(ALL.format("s")) == [(1, "a", True), (12, "x", True)]
    source(gated, (2, "y"))
    gated.dbt("build", "--select", "src", "s", "--exclude-resource-type", "test")
    assert gated.rows(ALL.format("s")) == [(1, "a", True), (2, "y", True), (12, "x", True)]


def test_snapshot_of_manual_model_waits_for_the_operation(gated: Shop) -> None:
    """Nobody asked for it by name: it follows its parent."""
    history(gated)
    source(gated, (1, "a"), config="materialized='table', publish='manual'")
    gated.dbt("build")
    assert gated.tables() == set()
    gated.dbt("run-operation", "tablestore_publish")
    assert gated.rows(ALL.format("s")) == [(1, "a", True)]


@pytest.mark.nightly  # by day the red model that its snapshot waits for
@pytest.mark.folders
def test_snapshot_into_a_table_with_another_key_is_refused_beside_staged_rows(gated: Shop) -> None:
    """MERGE would publish rows that their parent does not show: TS1883, and the table is as before."""
    history(gated)
    source(gated, (1, "a"))
    gated.dbt("build")
    gated.engine.sql(
        "create table demo.moved tblproperties ('primary-key' = 'id,dbt_valid_from') as select * from demo.s"
    )
    gated.engine.sql("drop table demo.s")
    gated.engine.sql("alter table demo.moved rename to demo.s")
    source(gated, (1, "b"))
    gated.dbt("build", ok=False)
    assert "TS1883" in gated.results()["s"]["message"]
    assert gated.rows(ALL.format("s")) == [(1, "a", True)]
    gated.dbt("snapshot")
    assert gated.rows(ALL.format("s")) == [(1, "a", False), (1, "b", True)]


UNIT_TEST = """
unit_tests:
  - name: doubles
    model: top
    given: [{input: ref('src'), rows: [{id: 1, more: 4}]}]
    expect: {rows: [{id: 1, twice: 8}]}
"""


def test_unit_test_of_child_knows_columns_of_staged_parent(gated: Shop) -> None:
    """A first build, and a column that is new in the staged rows: fixtures have the columns that the child reads."""
    gated.write("models/unit.yml", UNIT_TEST)
    gated.write(
        "models/top.sql",
        "{{ config(materialized='table') }} select id, more * 2 as twice from {{ ref('src') }}",
    )
    gated.write("models/src.sql", "{{ config(materialized='table') }} select 1 as id, 4 as more")
    gated.dbt("build")
    assert gated.rows("select * from demo.top") == [(1, 8)]
    gated.write("models/src.sql", "{{ config(materialized='table') }} select 1 as id, 4 as more, 5 as other")
    gated.write("models/unit.yml", UNIT_TEST.replace("more: 4", "other: 4"))
    gated.write(
        "models/top.sql",
        "{{ config(materialized='table') }} select id, other * 2 as twice from {{ ref('src') }}",
    )
    gated.dbt("build")
    assert gated.rows("select * from demo.top") == [(1, 10)]


@pytest.mark.nightly  # by day the red model, which is retried
def test_retried_child_reads_what_the_retried_build_has_staged(gated: Shop) -> None:
    """A snapshot that failed runs beside the test of its parent again: it has the rows that the parent shows then."""
    history(gated)
    source(gated, (1, "a"))
    gated.dbt("build")
    source(gated, (1, "b"), (12, "x"))
    history(gated, config="pre_hook='select broken'")
    gated.dbt("build", ok=False)
    history(gated)
    gated.write("models/gates.yml", GATES.replace("field: id}", "field: id}, config: {where: 'id < 10'}"))
    gated.dbt("retry")
    assert gated.rows(ALL.format("s")) == [(1, "a", False), (1, "b", True), (12, "x", True)]
    assert gated.engine.staged("demo") == ()


FEED = """
{{{{ config(materialized='table', event_time='at') }}}}
select * from values (1, timestamp '2026-01-01 10:00:00'), (2, timestamp '2026-01-02 10:00:00') {more} as t(id, at)
"""
BATCHED = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', begin='2026-01-01',
          batch_size='day', unique_key='id', concurrent_batches=true) }}
select * from {{ ref('src') }}
"""


@pytest.mark.nightly  # by day test_gated_batches.py; tests/unit/adapter/test_microbatches.py
@pytest.mark.parametrize("threads", cases([4, 1], 1))
def test_batches_of_a_child_are_published_with_the_parent(gated: Shop, threads: int) -> None:
    """The parent is published before, between or behind the batches of a child without tests: all batches are out then,
    and none of a red parent.
    """
    gated.output["threads"] = threads
    gated.write("models/child.sql", BATCHED)
    days = ("--event-time-start", "2026-01-01", "--event-time-end", "2026-01-05")
    ids = "select id from demo.child order by id"
    gated.write("models/src.sql", FEED.format(more=", (3, timestamp '2026-01-03 10:00:00')"))
    gated.dbt("build", *days)
    assert gated.rows(ids) == [(1,), (2,), (3,)]
    gated.write("models/src.sql", FEED.format(more=", (4, timestamp '2026-01-04 10:00:00')"))
    gated.dbt("build", *days)
    assert gated.rows(ids) == [(1,), (2,), (4,)]
    gated.write("models/src.sql", FEED.format(more=", (12, timestamp '2026-01-04 10:00:00')"))
    gated.dbt("build", *days, ok=False)
    assert gated.rows(ids) == [(1,), (2,), (4,)]
