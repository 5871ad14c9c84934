"""`dbt compile` of changed_keys models: each line, with the sizes of what is read and with tips."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.test_changed_keys_soundness import ORDERS, PEOPLE, PRODUCTS, feed, model

__all__ = ["feed"]


def explained(shop: Shop, name: str) -> list[str]:
    """Lines of the model, without its name; bytes of files as N."""
    shop.dbt("compile", "--select", name)
    lines = [re.sub(r", \d[\d.]* [KM]?B\)", ", N)", line) for line in shop.shown]
    begin = f"demo.{name}: "
    return [line.partition(begin)[2] for line in lines if begin in line]


def test_deltas_name_what_they_read_and_what_count_would_save(feed: Shop) -> None:
    """A side of a join is read by its key, or whole; groups without count(*) have a tip, with it none."""
    star = f"select p.name, max(o.amount) as most from {ORDERS} o join {PRODUCTS} p on p.id = o.product group by p.name"
    model(feed, "star", star, "name")
    assert explained(feed, "star") == [
        "changes of demo.orders: deltas; rows of demo.products (3 rows, 1 file, N) are read by their keys",
        "tip: add count(*) to the model, so that a group that loses rows is not evaluated",
        "changes of demo.orders find their keys by a join with demo.products (3 rows, 1 file, N)",
        "changes of demo.products: deltas; each run reads demo.orders (4 rows, 1 file, N)",
        "tip: add count(*) to the model, so that a group that loses rows is not evaluated",
        "changes of demo.products give their keys without reading another table",
    ]
    model(feed, "star", star.replace("max", "count(*) as n, max"), "name")
    assert not [line for line in explained(feed, "star") if "tip" in line]


def test_affected_keys_name_the_clause_a_tip_and_the_tables_of_the_query(feed: Shop) -> None:
    """A sum of distinct values has no deltas; the query for the keys is over all of its tables."""
    model(feed, "means", f"select customer as id, sum(distinct amount) as a from {ORDERS} group by customer")
    assert explained(feed, "means") == [
        "changes of demo.orders: affected keys: an aggregate function whose changes cannot be added up (a)",
        "changes of demo.orders give their keys without reading another table",
        "the query for affected keys reads demo.orders (4 rows, 1 file, N)",
    ]


def test_all_rows_name_the_clause_a_tip_and_what_is_read(feed: Shop) -> None:
    """An average of DOUBLE in a window without PARTITION BY, whose old value is not certain."""
    model(feed, "ranked", f"select id, avg(cast(amount as double)) over () as mean from {ORDERS}")
    assert explained(feed, "ranked") == [
        "each run that finds changes compares all rows: a window function without PARTITION BY (over demo.orders)",
        "tip: add PARTITION BY, or compute the window in a model of its own",
        "such a run reads demo.orders (4 rows, 1 file, N)",
    ]


def test_time_of_the_run_is_an_input_of_its_own(feed: Shop) -> None:
    """It reads the table whose columns are compared with it."""
    model(feed, "staff", f"select p.id from {PEOPLE} p where p.boss < day(current_date())")
    assert explained(feed, "staff") == [
        "changes of demo.people: deltas; no other table is read",
        "changes of demo.people give their keys without reading another table",
        "changes of the time of the run: deltas; each run reads demo.people (4 rows, 1 file, N)",
        "changes of the time of the run find their keys by a join with demo.people (4 rows, 1 file, N)",
    ]


def command_line(shop: Shop, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`tablestore explain model` in a process of its own."""
    folder = str(shop.folder)
    command = [sys.executable, "-m", "tablestore_engine.cli.main", "explain", "model", name, *words]
    command += ["--project-dir", folder, "--profiles-dir", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.nightly  # by day the lines of dbt compile in this file; tests/unit/cli/test_explain.py
def test_command_prints_the_lines_of_dbt_compile_alone(feed: Shop) -> None:
    """As JSON."""
    model(feed, "means", f"select customer as id, avg(amount) as a from {ORDERS} group by customer")
    lines = explained(feed, "means")
    done = command_line(feed, "means", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [re.sub(r", \d[\d.]* [KM]?B\)", ", N)", one["line"]) for one in found] == lines
    assert {(one["model"], one["is_warning"]) for one in found} == {("demo.means", False)}


@pytest.mark.nightly  # by day tests/unit/cli/test_explain.py
def test_command_refuses_another_model_by_name_and_shows_errors_of_dbt(feed: Shop) -> None:
    """A model of another kind is TS1993; an error of dbt ends with status 1."""
    feed.write("models/plain.sql", f"select id from {ORDERS}")
    done = command_line(feed, "plain")
    assert (done.returncode, "TS1993" in done.stderr) == (1, True)
    model(feed, "means", f"select customer as id, now() as a from {ORDERS}")
    done = command_line(feed, "means")
    assert (done.returncode, "TS1871" in done.stderr) == (1, True)
