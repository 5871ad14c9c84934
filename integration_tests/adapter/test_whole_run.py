"""publish='all_or_nothing' by dbt: readers see all tables of a run, or none of them."""

from __future__ import annotations

from integration_tests.adapter.conftest import Shop

PROJECT = """
name: shop
version: '1.0'
profile: shop
models: {+publish: all_or_nothing}
seeds: {+publish: all_or_nothing}
snapshots: {+publish: all_or_nothing}
"""
HISTORY = """
snapshots:
  - name: history
    relation: ref('raw')
    config: {unique_key: id, strategy: check, check_cols: all}
"""


def project(shop: Shop) -> None:
    """A seed, a snapshot of it, three models, of which one is a view."""
    for path in (*shop.folder.glob("models/*"), *shop.folder.glob("seeds/*"), *shop.folder.glob("macros/*")):
        path.unlink()
    shop.write("dbt_project.yml", PROJECT)
    shop.write("snapshots/history.yml", HISTORY)
    shop.write(
        "models/totals.sql", "{{ config(materialized='table') }} select count(*) as n from {{ ref('raw') }}"
    )
    kept = "{{ config(materialized='incremental', unique_key='id') }}"
    shop.write(
        "models/doubled.sql",
        kept + "select id, if(v > 100, raise_error('too large'), v * 2) as v from {{ ref('raw') }}",
    )
    shop.write("models/seen.sql", "{{ config(materialized='view') }} select * from {{ ref('doubled') }}")
    accept(shop, 1, 2)


def accept(shop: Shop, *counts: int) -> None:
    """What the data test of totals lets pass."""
    test = f"accepted_values: {{arguments: {{values: {list(counts)}}}}}"
    shop.write(
        "models/t.yml", f"models: [{{name: totals, columns: [{{name: n, data_tests: [{{{test}}}]}}]}}]"
    )


def feed(shop: Shop, *values: int) -> None:
    """What the seed has."""
    rows = "\n".join(f"{number},{value}" for number, value in enumerate(values))
    shop.write("seeds/raw.csv", f"id,v\n{rows}\n")


def seen(shop: Shop) -> tuple[object, ...]:
    """What readers see of each."""
    counts = tuple(shop.rows(f"select count(*) from demo.{name}")[0][0] for name in ("raw", "history"))
    values = tuple(value for (value,) in shop.rows("select v from demo.doubled order by id"))
    return (*counts, shop.rows("select n from demo.totals")[0][0], values)


def test_a_run_is_published_whole_or_not_at_all(shop: Shop) -> None:
    """An error in one model, then a red test, keep seed, snapshot and models as they were; the retry lets all go."""
    project(shop)
    feed(shop, 1)
    shop.dbt("build")
    assert seen(shop) == (1, 1, 1, (2,))
    feed(shop, 1, 500)
    shop.dbt("build", ok=False)
    assert "(not built: doubled)" in shop.log
    assert shop.response("totals")["published"] is False
    assert seen(shop) == (1, 1, 1, (2,))
    feed(shop, 1, 5)
    shop.dbt("build")
    assert seen(shop) == (2, 2, 2, (2, 10))
    assert shop.response("totals")["published"] is True
    feed(shop, 1, 5, 6)
    shop.dbt("build", ok=False)
    assert seen(shop) == (2, 2, 2, (2, 10))
    accept(shop, 1, 2, 3)
    shop.dbt("build")
    assert seen(shop) == (3, 3, 3, (2, 10, 12))
    assert shop.engine.staged("demo") == ()


def test_a_retry_completes_the_run(shop: Shop) -> None:
    """dbt run without tests: a model fails, the others wait; once it is repaired, `dbt retry` publishes all."""
    project(shop)
    feed(shop, 1, 500)
    shop.dbt("seed", "--vars", "{}")
    shop.dbt("run", ok=False)
    assert shop.tables() >= {"raw"}
    assert len(shop.engine.staged("demo")) == 1
    shop.write(
        "models/doubled.sql",
        "{{ config(materialized='incremental', unique_key='id') }} select id, v * 2 as v from {{ ref('raw') }}",
    )
    shop.dbt("retry")
    assert shop.rows("select v from demo.seen order by id") == [(2,), (1000,)]
    assert shop.rows("select n from demo.totals") == [(2,)]
    assert shop.engine.staged("demo") == ()
