"""The SELECT of each strategy, as text."""

from __future__ import annotations

from dbt.adapters.tablestore.plan.select_sql import Sides, merge_select, replace_select

SIDES = Sides("select 1", ("id", "msg", "new"), "demo.t", ("id", "MSG", "old"))


def flat(text: str) -> str:
    """One line."""
    return " ".join(text.split())


def test_a_plain_merge_is_the_models_own_query() -> None:
    """An upsert needs no join: nothing is wrapped."""
    assert merge_select(SIDES, ["id"]) == "select 1"


def test_excluded_columns_keep_the_tables_value() -> None:
    """Only columns that both sides have can keep a value; a key never is excluded."""
    assert flat(merge_select(SIDES, ["id"], exclude=["msg", "id", "new"])) == flat(
        """
        with DBT_INTERNAL_SOURCE as ( select 1 )
        select DBT_INTERNAL_SOURCE.`id`,
          if(DBT_INTERNAL_DEST.`id` is not null, DBT_INTERNAL_DEST.`msg`, DBT_INTERNAL_SOURCE.`msg`) as `msg`,
          DBT_INTERNAL_SOURCE.`new`
        from DBT_INTERNAL_SOURCE left join demo.t as DBT_INTERNAL_DEST
          on DBT_INTERNAL_SOURCE.`id` = DBT_INTERNAL_DEST.`id`
        """
    )


def test_update_columns_are_the_complement_of_excluded_ones() -> None:
    """merge_update_columns=[new] keeps msg, as merge_exclude_columns=[msg] does."""
    assert merge_select(SIDES, ["id"], update=["new"]) == merge_select(SIDES, ["id"], exclude=["msg"])


def test_a_key_outside_the_predicates_is_an_error_at_run_time() -> None:
    """A second row of one key can never be written."""
    text = flat(merge_select(SIDES, ["id"], predicates=["DBT_INTERNAL_DEST.old > 1"]))
    assert (
        "where if(DBT_INTERNAL_DEST.`id` is not null and not coalesce((DBT_INTERNAL_DEST.old > 1), false), raise_error("
        in text
    )


def test_delete_insert_keeps_rows_of_other_keys_and_fills_absent_columns() -> None:
    """Both sides of the union have the same columns in the same order."""
    assert flat(replace_select(SIDES, ["id"], ["id", "MSG", "old", "new"], ["id != 2"])) == flat(
        """
        with DBT_INTERNAL_SOURCE as ( select 1 )
        select DBT_INTERNAL_DEST.`id`, DBT_INTERNAL_DEST.`MSG`, DBT_INTERNAL_DEST.`old`, null as `new`
        from demo.t as DBT_INTERNAL_DEST
        where not (exists (select 1 from DBT_INTERNAL_SOURCE where DBT_INTERNAL_SOURCE.`id` = DBT_INTERNAL_DEST.`id`)
          and coalesce(id != 2, false))
        union all
        select DBT_INTERNAL_SOURCE.`id`, DBT_INTERNAL_SOURCE.`MSG`, null as `old`, DBT_INTERNAL_SOURCE.`new`
        from DBT_INTERNAL_SOURCE
        """
    )
