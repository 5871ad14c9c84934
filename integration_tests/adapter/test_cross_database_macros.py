"""Macros of dbt that cast, index or compute with times: the same in both modes of Spark."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop
from tests.doses import cases

ANSI = "spark.sql.ansi.enabled"
AT = "timestamp '2026-01-31 10:00:00.25'"
MACROS = {  # a call → its value as text
    """dbt.safe_cast("'x'", "int")""": "None",
    """dbt.safe_cast("'7'", "int")""": "7",
    """dbt.split_part("'a.b'", "'.'", 2)""": "b",
    """dbt.split_part("'a.b'", "'.'", 3)""": "None",
    """dbt.split_part("'a.b'", "'.'", -1)""": "b",
    """dbt.split_part("'a.b'", "'.'", -3)""": "None",
    """dbt.split_part("'a=>b=>c'", "'=>'", 2)""": "b",
    """dbt.split_part("'anbnc'", "'n'", 3)""": "c",
    f"""dbt.dateadd("millisecond", 50, "{AT}")""": "2026-01-31 10:00:00.300000+00:00",
    f"""dbt.dateadd("hour", -11, "{AT}")""": "2026-01-30 23:00:00.250000+00:00",
    f"""dbt.dateadd("month", 1, "{AT}")""": "2026-02-28 10:00:00.250000+00:00",
    """dbt.dateadd("week", 1, "'2026-01-01'")""": "2026-01-08 00:00:00+00:00",
    f"""dbt.datediff("{AT}", "timestamp '2026-01-31 10:00:01'", "microsecond")""": "750000",
    f"""dbt.datediff("{AT}", "date '2026-02-01'", "day")""": "1",
    f"""dbt.last_day("{AT}", "month")""": "2026-01-31",
    f"""dbt.date_trunc("hour", "{AT}")""": "2026-01-31 10:00:00+00:00",
    """dbt.array_construct([1, 2], api.Column.translate_type("integer"))""": "[1, 2]",
    """dbt.cast_bool_to_text("true")""": "true",
    """dbt.hash("12")""": "c20ad4d76fe97759aa27a0c99bff6710",
    """dbt.position("'b'", "'abc'")""": "2",
    """dbt.concat(["'a'", "12"])""": "a12",
}


@pytest.mark.parametrize("mode", cases(["true", "false"], 1))
def test_macros_of_dbt_give_the_same_in_both_modes(shop: Shop, mode: str) -> None:
    """Each call has its value, and a fixture that does not fit its type is an error in ANSI mode, never NULL there."""
    columns = ", ".join(f"{{{{ {call} }}}} as c{number}" for number, call in enumerate(MACROS))
    shop.write("models/called.sql", f"{{{{ config(materialized='view') }}}} select {columns}, 5 as n")
    shop.write("models/after.sql", "select n + 1 as n from {{ ref('called') }}")
    unit = "{name: fits, model: after, given: [{input: ref('called'), rows: [{n: %s}]}], expect: {rows: [{n: %s}]}}"
    shop.write("models/unit.yml", f"unit_tests: [{unit % ('2', '3')}]")
    conf = shop.engine.spark.conf
    before = str(conf.get(ANSI))
    conf.set(ANSI, mode)
    try:
        shop.dbt("run", "--select", "called")
        found = shop.engine.sql("select * from demo.called").rows[0]
        assert [*map(str, found[:-1])] == [*MACROS.values()]
        shop.dbt("test", "--select", "after,test_type:unit")
        if mode == "true":
            for wrong in (unit % ("x", "3"), unit % ("2", "x")):
                shop.write("models/unit.yml", f"unit_tests: [{wrong}]")
                shop.dbt("test", "--select", "after,test_type:unit", ok=False)
                assert "CAST_INVALID_INPUT" in shop.log
    finally:
        conf.set(ANSI, before)
