"""Texts of dbt's built-in data tests are recognized token by token, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.sql.data_test_query import (
    ColumnName,
    DataTest,
    DataTestQuery,
    Threshold,
    read_data_test,
)
from tablestore_engine.sql.scanner import scan, significant

FRAME = """/* {{"app": "dbt"}} */
    select
      count(*) as failures,
      count(*) {warn} as should_warn,
      count(*) {error} as should_error
    from (
      {body}
    ) dbt_internal_test"""
NOT_NULL = "select id\nfrom shop.orders\nwhere id is null"
UNIQUE = """
select
    id as unique_field,
    count(*) as n_records
from shop.orders
where id is not null
group by id
having count(*) > 1
"""
ACCEPTED = """
with all_values as (
    select state as value_field, count(*) as n_records
    from shop.orders
    group by state
)
select * from all_values where value_field not in ('open','paid')
"""
RELATIONSHIPS = """
with child as (select customer as from_field from shop.orders where customer is not null),
parent as (select id as to_field from shop.customers)
select from_field
from child
left join parent on child.from_field = parent.to_field
where parent.to_field is null
"""
ORDERS_ID = ColumnName("shop", "orders", "id")
NEVER_ZERO = Threshold("!=", 0)


def _framed(body: str, warn: str = "!= 0", error: str = "!= 0") -> str:
    return FRAME.format(body=body, warn=warn, error=error)


def test_the_four_tests_are_read() -> None:
    """With their columns, values and thresholds."""
    ends = (NEVER_ZERO, NEVER_ZERO)
    state = ColumnName("shop", "orders", "state")
    customer, parent = ColumnName("shop", "orders", "customer"), ColumnName("shop", "customers", "id")
    assert read_data_test(_framed(NOT_NULL)) == DataTestQuery(DataTest.NOT_NULL, ORDERS_ID, *ends)
    assert read_data_test(_framed(UNIQUE)) == DataTestQuery(DataTest.UNIQUE, ORDERS_ID, *ends)
    assert read_data_test(_framed(ACCEPTED)) == DataTestQuery(
        DataTest.ACCEPTED_VALUES, state, *ends, values=("open", "paid")
    )
    assert read_data_test(_framed(RELATIONSHIPS)) == DataTestQuery(
        DataTest.RELATIONSHIPS, customer, *ends, parent=parent
    )


def test_thresholds_limits_and_literals_are_read() -> None:
    """warn_if, error_if and limit of a test, quote: false of accepted_values."""
    found = read_data_test(_framed(NOT_NULL + " limit 500", ">10", ">= 100"))
    assert found == DataTestQuery(
        DataTest.NOT_NULL, ORDERS_ID, Threshold(">", 10), Threshold(">=", 100), limit=500
    )
    numbers = read_data_test(_framed(ACCEPTED.replace("'open','paid'", "1, -2, true")))
    assert numbers is not None
    assert numbers.values == (1, -2, True)


@pytest.mark.parametrize(
    "text",
    [
        NOT_NULL,
        _framed(NOT_NULL) + " x",
        _framed(NOT_NULL + " or true"),
        _framed(NOT_NULL.replace("where id", "where amount")),
        _framed(NOT_NULL.replace("select id", "select *")),
        _framed(NOT_NULL.replace("shop.orders", "orders")),
        _framed(NOT_NULL.replace("shop.orders", "a.shop.orders")),
        _framed(NOT_NULL.replace("shop.orders", "(select * from shop.orders) s")),
        _framed(NOT_NULL.replace("id", "current_date")),
        _framed(NOT_NULL.replace("id", "a.b")),
        _framed(NOT_NULL.replace("select id", "select /*+ repartition(9) */ id")),
        _framed(UNIQUE.replace("> 1", "> 2")),
        _framed(UNIQUE.replace("count(*)", "count(id)")),
        _framed(ACCEPTED.replace("'open'", "'o''pen'")),
        _framed(ACCEPTED.replace("'open'", r"'\n'")),
        _framed(ACCEPTED.replace("'open'", "r'open'")),
        _framed(ACCEPTED.replace("'open'", "'open' 'paid'")),
        _framed(ACCEPTED.replace("'open'", "1.5")),
        _framed(ACCEPTED.replace("'open'", "5L")),
        _framed(ACCEPTED.replace("'open','paid'", "")),
        _framed(RELATIONSHIPS.replace("left join", "join")),
        _framed(RELATIONSHIPS.replace("from child", "from kids")),
        _framed(NOT_NULL, "!= 0 or true"),
        _framed(NOT_NULL, "between 1 and 5"),
        _framed(NOT_NULL).replace("count(*) as failures", "sum(id) as failures"),
        _framed(NOT_NULL + " limit 5 + 5"),
    ],
)
def test_other_texts_are_none(text: str) -> None:
    """One word more, less or another is a query for Spark."""
    assert read_data_test(text) is None


WORDS = sorted(
    {token.text for text in (UNIQUE, ACCEPTED, RELATIONSHIPS) for token in significant(scan(text))}
)


@given(st.data())
def test_a_changed_word_is_never_the_same_test(data: st.DataObject) -> None:
    """A word that is replaced, dropped or doubled gives None, or a test that says what the new text says."""
    body = data.draw(st.sampled_from([NOT_NULL, UNIQUE, ACCEPTED, RELATIONSHIPS]))
    words = [token.text for token in significant(scan(_framed(body)))]
    at = data.draw(st.integers(0, len(words) - 1))
    new = data.draw(st.lists(st.sampled_from([*WORDS, "union", "x"]), max_size=2))
    before, after = (
        read_data_test(_framed(body)),
        read_data_test(" ".join([*words[:at], *new, *words[at + 1 :]])),
    )
    if after is not None and after != before:
        assert before is not None
        assert after.test is before.test
        assert len(new) == 1
        assert new[0] not in (".", "(", ")", ",", "*")
