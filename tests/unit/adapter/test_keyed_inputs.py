"""SQL of a Python model by changed_keys: the query of its keys, and its inputs' rows for some of them."""

from __future__ import annotations

from dbt.adapters.tablestore.config.changed_keys_config import Affected
from dbt.adapters.tablestore.plan.changed_keys_sql import KeysSelect
from dbt.adapters.tablestore.python_models.keyed_inputs import inputs_of, keyed_inputs

COMPILED = """
def model(dbt, session):
    refs = {"mine": "no.input"}
    return dbt.ref("orders")


def ref(*args, **kwargs):
    refs = {"orders": "`demo`.`orders`", "shop.days.v2": "`demo`.`days_v2`"}
    key = '.'.join(args)
    return kwargs["dbt_load_df_function"](refs[key])


def source(*args, dbt_load_df_function):
    sources = {"raw.orders": "`raw`.`orders`"}
    return dbt_load_df_function(sources['.'.join(args)])


class this:
    schema = "demo"
"""
ROW = "cast(struct(*) as string) as __ts_row"
KEYS_OF_ORDERS = f"select {ROW}, (x\n) as `a`, (y + 1\n) as `b` from d.orders"
KEYS = KeysSelect("select * from `keys`", frozenset({"b"}))
BOTH = Affected(("a", "b"), ("a", "b"), (("Orders", ("x", "y + 1")), ("gone", ("a", "b"))))


def test_inputs_are_those_of_dbts_part() -> None:
    """Names as SQL has them, each once; other mappings of the code are none."""
    assert inputs_of(COMPILED) == ("`demo`.`orders`", "`demo`.`days_v2`", "`raw`.`orders`")
    assert inputs_of("def model(dbt, session):\n    return 1\n") == ()


def test_names_have_no_case_and_may_have_no_schema() -> None:
    """Inputs that affected_by does not name are read whole."""
    found = keyed_inputs(inputs_of(COMPILED), BOTH)
    assert [name for name, _ in found.by] == ["`demo`.`orders`", "`raw`.`orders`"]
    assert found.whole == ("`demo`.`days_v2`",)


def test_the_query_of_the_keys_reads_all_inputs() -> None:
    """Keys of each input that has some, beside a total over the others; all columns count."""
    found = keyed_inputs(("d.orders", "d.days"), BOTH)
    assert found.query == (
        f"select * from (\n{KEYS_OF_ORDERS}\n) k cross join (\n"
        f"select max(__ts_row) as __ts_rows from (\nselect {ROW} from d.days\n)\n) w"
    )
    assert keyed_inputs(("d.orders",), BOTH).query == KEYS_OF_ORDERS


def test_rows_of_an_input_are_those_of_the_keys() -> None:
    """NULL is compared where a key has it; the helping columns are taken out again."""
    found = keyed_inputs(("d.orders", "d.days"), BOTH)
    assert found.rows_of("d.orders", KEYS) == (
        "select r.* except (__ts_key_0, __ts_key_1) from (\nselect *, (x\n) as `__ts_key_0`, (y + 1\n) as `__ts_key_1` "
        "from d.orders\n) r left semi join (\nselect * from `keys`\n) a on "
        "r.__ts_key_0 = a.`a` and r.__ts_key_1 <=> a.`b`"
    )
    assert found.rows_of("d.days", KEYS) == "select * from d.days"
    assert found.strange("rows", KEYS) == (
        "select r.`a`, r.`b` from rows r left anti join (\nselect * from `keys`\n) a "
        "on r.`a` = a.`a` and r.`b` <=> a.`b` limit 3"
    )
