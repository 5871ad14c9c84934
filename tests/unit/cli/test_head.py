"""head on a real warehouse: which rows, which state, what is said about the others."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.cli.head import take_first

from .conftest import KEYED, Run, orders


def test_head_prints_a_table_of_the_newest_rows(run: Run) -> None:
    """Columns in the order of the table, no row of the past, nothing on stderr when no row is left out."""
    done = run("head", "demo.orders")
    assert done.out.splitlines()[0].split() == ["order_id", "customer", "amount"]
    assert sorted(line.split()[0] for line in done.out.splitlines()[2:]) == ["2", "3", "4"]
    assert (done.status, done.err) == (0, "")


def test_head_says_how_many_rows_are_left_out(run: Run) -> None:
    """The note is on stderr, so that stdout stays JSON; the columns come as they are asked for."""
    done = run("head", "demo.orders", "-n", "1", "--columns", "amount, order_id", "--json")
    assert [list(row) for row in done.json] == [["amount", "order_id"]]
    assert done.err == "1 of 3 rows; see more with -n 3\n"
    assert run("head", "demo.orders", "-n", "0", "--json").json == []
    assert "TS1938" in run("head", "demo.orders", "-n", "-1").err


def test_head_of_a_past_state(run: Run, engine: Engine) -> None:
    """A snapshot id, a tag, a staged snapshot: each has its own rows."""
    table = engine.table("demo.orders")
    table.tag("monthly", 1)
    table.write(orders((9, "eve", 9.0)), WriteSpec(table=KEYED, stage="try"))

    def ids(*words: str) -> list[int]:
        return sorted(row["order_id"] for row in run("head", "demo.orders", *words, "--json").json)

    assert ids() == [2, 3, 4]
    assert ids("--snapshot", "1") == ids("--snapshot", "monthly") == [1, 2, 3]
    assert ids("--snapshot", "@staged") == ids("--snapshot", "@staged:try") == [2, 3, 4, 9]


def test_head_of_a_table_with_staged_rows_only_is_an_error(run: Run, engine: Engine) -> None:
    """TS1417 instead of an empty table; its commands can be copied, also with two staged snapshots."""
    engine.write("demo.first", orders((1, "ann", 1.0)), WriteSpec(table=KEYED, stage="try"))
    done = run("head", "demo.first")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("TS1417 table demo.first has no published snapshot yet")
    assert "tablestore staged publish demo.first;" in done.err
    assert done.err.endswith("tablestore head demo.first --snapshot @staged\n")
    assert [row["order_id"] for row in run("head", "demo.first", "--snapshot", "@staged", "--json").json] == [
        1
    ]
    engine.write("demo.first", orders((2, "bob", 2.0)), WriteSpec(table=KEYED, stage="two"))
    done = run("head", "demo.first")
    assert "tablestore staged publish demo.first two;" in done.err
    assert done.err.endswith("tablestore head demo.first --snapshot @staged:two\n")


def test_head_of_an_empty_table_prints_no_rows(run: Run, engine: Engine) -> None:
    """A table without any snapshot, staged or published, is empty."""
    engine.create_table("demo.empty", pa.schema({"id": pa.int64()}))
    done = run("head", "demo.empty")
    assert (done.status, done.err) == (0, "")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--snapshot", "99"), "TS1302"),
        (("--snapshot", "nope"), "TS1321"),
        (("--snapshot", "@staged"), "TS1546"),
        (("--columns", "nope"), "TS1110"),
    ],
)
def test_head_of_what_is_not_there_is_an_error(run: Run, words: tuple[str, ...], code: str) -> None:
    """A state or a column that does not exist: a code, status 1, nothing on stdout."""
    done = run("head", "demo.orders", *words)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(code), done.err


def test_head_reads_no_further_than_it_prints() -> None:
    """The batch behind the last printed row is not asked for: its file is not opened."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1, 2]})
        yield pa.record_batch({"a": [3, 4]})
        raise AssertionError("read too far")

    assert [batch.num_rows for batch in take_first(batches(), 3)] == [2, 1]
    assert [batch.num_rows for batch in take_first(batches(), 4)] == [2, 2]
    assert list(take_first(batches(), 0)) == []


def test_head_and_tail_of_a_view_name_the_command_that_reads_it(run: Run, engine: Engine) -> None:
    """TS1414 says that it is a view, and names no other table."""
    for command in ("head", "tail"):
        refused = run(command, "demo.big")
        assert refused.status == 1
        assert "TS1414 demo.big is a view" in refused.err
        assert 'tablestore sql "select * from demo.big"' in refused.err


def test_names_of_another_case_are_suggested(run: Run, engine: Engine) -> None:
    """Names differ by case."""
    assert "did you mean demo.orders?" in run("head", "DEMO.ORDERS").err
    assert "did you mean demo.orders?" in run("head", "demo.Orders").err
