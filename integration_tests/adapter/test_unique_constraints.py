"""Unique constraints of a contract: what the key implies costs nothing, all else is looked at before readers see it."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop


def _model(shop: Shop, rows: str, config: str = "materialized='table'", constraint: str = "") -> None:
    """A model m with columns id and mail; mail is unique unless `constraint` says something else."""
    of_column = "" if constraint else ", constraints: [{type: unique}]"
    shop.write(
        "models/m.yml",
        "models: [{name: m, config: {contract: {enforced: true}}, "
        f"{constraint} columns: [{{name: id, data_type: int}}, {{name: mail, data_type: string{of_column}}}]}}]",
    )
    query = f"select * from values {rows} as t(id, mail)"
    shop.write("models/m.sql", f"{{{{ config({config}) }}}} {query}")


def _seen(shop: Shop) -> list[tuple[object, ...]]:
    return shop.rows("select id, mail from demo.m order by id, mail")


def test_a_full_build_with_a_repeated_value_is_refused(shop: Shop) -> None:
    """First build: no table is left. Later: readers keep the old rows. NULLs repeat nothing."""
    _model(shop, "(1, 'a'), (2, 'a')")
    shop.dbt("run", "--select", "m", ok=False)
    assert "TS1808" in shop.log
    assert "mail = 'a' in 2 rows" in shop.log
    assert shop.engine.find_table("demo.m") is None
    _model(shop, "(1, 'a'), (2, cast(null as string)), (3, cast(null as string))")
    shop.dbt("run", "--select", "m")
    assert len(_seen(shop)) == 3
    assert shop.engine.table("demo.m").snapshot_ids() == (1,)
    assert shop.response("m")["rows_inserted"] == 3
    _model(shop, "(1, 'b'), (2, 'b')")
    shop.dbt("run", "--select", "m", ok=False)
    assert len(_seen(shop)) == 3
    assert shop.engine.staged("demo") == ()


def test_an_increment_is_checked_against_stored_rows(shop: Shop) -> None:
    """A value of a stored row that stays is refused, of one that is replaced in the same commit it is not."""
    config = "materialized='incremental', on_schema_change='fail', unique_key='id'"
    _model(shop, "(1, 'a'), (2, 'b')", config)
    shop.dbt("run", "--select", "m")
    _model(shop, "(3, 'a')", config)
    shop.dbt("run", "--select", "m", ok=False)
    assert "TS1808" in shop.log
    assert _seen(shop) == [(1, "a"), (2, "b")]
    _model(shop, "(1, 'c'), (3, 'a')", config)
    shop.dbt("run", "--select", "m")
    assert _seen(shop) == [(1, "c"), (2, "b"), (3, "a")]
    assert shop.engine.table("demo.m").snapshot_ids() == (1, 2)


@pytest.mark.nightly  # by day test_verdicts.py: a lost claim
def test_a_commit_in_between_is_checked_again(shop: Shop) -> None:
    """Another writer brings the value while this run looks: the rows are staged and looked at once more."""
    config = "materialized='incremental', on_schema_change='fail', unique_key='id'"
    _model(shop, "(1, 'a')", config)
    shop.dbt("run", "--select", "m")
    _model(shop, "(2, 'b')", config)
    others = iter([(3, "z"), (4, "b")])

    def commit(line: str) -> None:
        if "having count(*) > 1" in line and (row := next(others, None)):
            shop.engine.sql(f"insert into demo.m values ({row[0]}, '{row[1]}')")

    checked: list[str] = []
    engine = shop.engine
    sql = engine.sql

    def while_others_write(text: str, **more: object) -> object:
        if "having count(*) > 1" in text:
            checked.append(text)
            done = sql(text)
            commit(text)
            return done
        return sql(text, **more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(engine), "sql", lambda _, text, **more: while_others_write(text, **more))
        shop.dbt("run", "--select", "m", ok=False)
    assert len(checked) == 3
    assert "mail = 'b' in 2 rows" in shop.log
    assert _seen(shop) == [(1, "a"), (3, "z"), (4, "b")]


def test_what_the_key_implies_is_not_looked_at(shop: Shop) -> None:
    """The key alone, and a set that contains it: no staged snapshot, no query."""
    constraint = "constraints: [{type: unique, columns: [id]}, {type: unique, columns: [mail, ID]}],"
    _model(shop, "(1, 'a'), (2, 'a')", "materialized='table', primary_key='id'", constraint)
    shop.dbt("run", "--select", "m")
    assert "having count(*)" not in shop.log
    assert _seen(shop) == [(1, "a"), (2, "a")]


@pytest.mark.nightly  # by day tests/unit/adapter/test_unique_check.py
def test_several_columns_are_unique_together(shop: Shop) -> None:
    """On a table without a key."""
    constraint = "constraints: [{type: unique, columns: [id, mail]}],"
    _model(shop, "(1, 'a'), (1, 'b'), (2, 'a')", constraint=constraint)
    shop.dbt("run", "--select", "m")
    _model(shop, "(1, 'a'), (1, 'b'), (1, 'a')", constraint=constraint)
    shop.dbt("run", "--select", "m", ok=False)
    assert "id = 1, mail = 'a' in 2 rows" in shop.log


def test_a_gated_model_is_checked_before_its_tests(shop: Shop) -> None:
    """dbt build: no test runs on rows that break the constraint, and nothing stays staged."""
    _model(shop, "(1, 'a'), (2, 'a')")
    text = (shop.folder / "models/m.yml").read_text()
    shop.write("models/m.yml", text.replace("{name: id,", "{name: id, data_tests: [not_null],"))
    shop.dbt("build", "--select", "m", ok=False)
    assert "TS1808" in shop.log
    assert shop.results()["not_null_m_id"]["status"] == "skipped"
    assert shop.engine.staged("demo") == ()
    shop.write("models/m.sql", "{{ config(materialized='table') }} select 1 as id, 'a' as mail")
    shop.dbt("build", "--select", "m")
    assert _seen(shop) == [(1, "a")]


@pytest.mark.nightly  # by day the full build above
def test_a_table_with_another_key_takes_the_place_only_when_it_is_unique(shop: Shop) -> None:
    """--full-refresh with another key: the old table stays until the new one has passed."""
    config = "materialized='incremental', on_schema_change='fail', unique_key='{}'"
    _model(shop, "(1, 'a')", config.format("id"))
    shop.dbt("run", "--select", "m")
    constraint = "constraints: [{type: unique, columns: [id]}],"
    _model(shop, "(1, 'x'), (1, 'y')", config.format("mail"), constraint)
    shop.dbt("run", "--select", "m", "--full-refresh", ok=False)
    assert "TS1808" in shop.log
    assert _seen(shop) == [(1, "a")]
    _model(shop, "(1, 'x'), (2, 'y')", config.format("mail"), constraint)
    shop.dbt("run", "--select", "m", "--full-refresh")
    assert _seen(shop) == [(1, "x"), (2, "y")]
    assert shop.engine.replacements("demo") == ()
    assert shop.engine.staged("demo") == ()


def test_a_microbatch_says_that_it_is_not_checked(shop: Shop) -> None:
    """Once, with what to do instead."""
    _model(
        shop,
        "(1, 'a')",
        "materialized='incremental', on_schema_change='fail', incremental_strategy='microbatch', "
        "event_time='at', begin='2026-01-01', batch_size='day'",
    )
    text = (shop.folder / "models/m.yml").read_text()
    shop.write("models/m.yml", text.replace("columns: [", "columns: [{name: at, data_type: timestamp}, ", 1))
    path = shop.folder / "models/m.sql"
    path.write_text(path.read_text().replace("select *", "select timestamp '2026-01-01 01:00:00' as at, *"))
    shop.dbt("run", "--select", "m", "--event-time-start", "2026-01-01", "--event-time-end", "2026-01-03")
    said = [line for line in shop.shown if "unique constraint on mail is not enforced" in line]
    assert len(said) == 1
    assert "a microbatch model" in said[0]
