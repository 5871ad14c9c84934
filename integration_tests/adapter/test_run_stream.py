"""`tablestore run-stream`: a process that keeps a model up until it is asked to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pyarrow as pa
import pytest
import yaml

from dbt.adapters.tablestore.continuous.quarantine_table import quarantine_failed
from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import Engine, TableSpec, WriteSpec

FEED = WriteSpec(table=TableSpec(primary_key=("id",)))
MODEL = """{{ config(materialized='streaming', unique_key='id') }}
select id, v, _row_kind, _snapshot_id from {{ stream(source('raw', 'feed')) }}"""
PATIENCE_SECONDS = 240


def put(shop: Shop, key: int, v: str | None) -> None:
    """Somebody's commit."""
    shop.engine.write("demo.feed", pa.table({"id": [key], "v": pa.array([v], pa.string())}), FEED)


@contextmanager
def running(shop: Shop, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The process; dead at the end."""
    shop.write("models/feed.yml", "sources: [{name: raw, schema: demo, tables: [{name: feed}]}]")
    shop.write("models/copy.sql", MODEL)
    shop.write("profiles.yml", yaml.safe_dump({"shop": {"target": "dev", "outputs": {"dev": shop.output}}}))
    place = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    child = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tablestore_engine.cli.main",
            "run-stream",
            "--interval",
            "0.5",
            *place,
            *words,
        ],
        cwd=shop.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def wait_until(there: Callable[[], bool], child: subprocess.Popen[str]) -> None:
    """However slow the machine is."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not there():
        assert time.monotonic() < end
        assert child.poll() is None, child.communicate()[0]
        time.sleep(0.2)


def copied(shop: Shop) -> dict[int, str | None]:
    """The model's rows as others see them, read without Spark."""
    found = shop.engine.find_table("demo.copy")
    if found is None or found.latest_snapshot_id() is None:
        return {}
    return {row["id"]: row["v"] for row in found.scan().to_arrow().to_pylist()}


def test_a_model_is_kept_up_until_sigterm(shop: Shop) -> None:
    """What others commit arrives, without another command; SIGTERM ends it with status 0, and it said what it did."""
    put(shop, 1, "a")
    with running(shop, "--select", "copy") as child:
        wait_until(lambda: copied(shop) == {1: "a"}, child)
        put(shop, 2, "b")
        put(shop, 1, "c")
        wait_until(lambda: copied(shop) == {1: "c", 2: "b"}, child)
        child.send_signal(signal.SIGTERM)
        output = child.communicate(timeout=PATIENCE_SECONDS)[0]
    assert child.returncode == 0, output
    assert "copy: OK snapshot" in output or "copy: snapshot" in output, output
    assert "feed" in output


def quarantine(shop: Shop) -> list[tuple[object, ...]]:
    """What was quarantined, with its kind and the test that was red."""
    found = shop.engine.find_table("demo.copy__dead_letter")
    rows = [] if found is None else found.scan().to_arrow().to_pylist()
    return sorted((row["id"], row["v"], row["dead_letter_kind"], row["dead_letter_tests"]) for row in rows)


@pytest.mark.nightly  # by day test_quarantine_table.py, and the test before this one
def test_red_rows_are_put_aside_and_it_goes_on(shop: Shop) -> None:
    """With --on-red dead_letter nobody waits for them: later rows come, these stand in a table of their own, once."""
    put(shop, 1, "a")
    shop.write("models/t.yml", "models: [{name: copy, columns: [{name: v, data_tests: [not_null]}]}]")
    with running(shop, "--select", "copy", "--test", "--on-red", "dead_letter") as child:
        wait_until(lambda: copied(shop) == {1: "a"}, child)
        put(shop, 2, None)
        wait_until(lambda: len(quarantine(shop)) == 1, child)
        put(shop, 3, "c")
        put(shop, 1, "b")
        wait_until(lambda: copied(shop) == {1: "b", 3: "c"}, child)
        child.send_signal(signal.SIGTERM)
        output = child.communicate(timeout=PATIENCE_SECONDS)[0]
    assert child.returncode == 0, output
    assert "1 changes are quarantined in demo.copy__dead_letter (failed: not_null_copy_v)" in output
    assert "red: not_null_copy_v: " not in output
    assert quarantine(shop) == [(2, None, "+I", "not_null_copy_v")]
    assert shop.engine.table("demo.copy").staged() == ()


class Dies:
    """An engine whose process ends before the second of two commits."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self.writes = engine, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def write(self, *given: object, **named: object) -> object:
        """The first one is done."""
        self.writes += 1
        if self.writes == 2:
            raise KeyboardInterrupt
        return self._engine.write(*given, **named)  # type: ignore[arg-type]  # whatever was asked


@pytest.mark.nightly
def test_killed_between_letters_and_model(shop: Shop) -> None:
    """The next round finds that they were quarantined, also when more has come meanwhile: each stands there once."""
    shop.write("models/feed.yml", "sources: [{name: raw, schema: demo, tables: [{name: feed}]}]")
    shop.write("models/copy.sql", MODEL)
    shop.write("models/t.yml", "models: [{name: copy, columns: [{name: v, data_tests: [not_null]}]}]")
    put(shop, 1, "a")
    shop.dbt("build", "--select", "copy")
    put(shop, 2, None)
    red = shop.dbt("build", "--select", "copy", ok=False)
    with pytest.raises(KeyboardInterrupt):
        quarantine_failed(cast("Engine", Dies(shop.engine)), red.result.results)  # type: ignore[union-attr]  # dbt's
    assert len(quarantine(shop)) == 1
    put(shop, 3, None)
    for expected in (1, 2):
        red = shop.dbt("build", "--select", "copy", ok=False)
        done = quarantine_failed(shop.engine, red.result.results)  # type: ignore[union-attr]  # dbt's
        assert len(done.tests) == 1
        assert len(quarantine(shop)) == expected
    shop.dbt("build", "--select", "copy")
    put(shop, 4, "d")
    shop.dbt("build", "--select", "copy")
    assert copied(shop) == {1: "a", 4: "d"}
    assert [row[0] for row in quarantine(shop)] == [2, 3]


@pytest.mark.nightly
def test_totals_do_not_count_what_was_put_aside(shop: Shop) -> None:
    """What a query remembers stays as it was before; a model without a key, too, gets its later rows only."""
    added = WriteSpec(table=TableSpec(options={"bucket": "-1"}))
    shop.write("models/feed.yml", "sources: [{name: raw, schema: demo, tables: [{name: clicks}]}]")
    shop.write(
        "models/totals.sql",
        "{{ config(materialized='streaming', unique_key='page') }}"
        "select page, count(*) as n from {{ stream(source('raw', 'clicks')) }} group by page",
    )
    shop.write(
        "models/journal.sql",
        "{{ config(materialized='streaming') }} select id, page from {{ stream(source('raw', 'clicks')) }}",
    )
    allowed = "accepted_values: {arguments: {values: [a, b, c]}}"
    tests = f"columns: [{{name: page, data_tests: [{allowed}]}}]"
    shop.write("models/t.yml", f"models: [{{name: totals, {tests}}}, {{name: journal, {tests}}}]")
    for number, pages in enumerate((["a", "b"], ["a", "bad"], ["a", "c"])):
        rows = pa.table({"id": [10 * number, 10 * number + 1], "page": pa.array(pages, pa.string())})
        shop.engine.write("demo.clicks", rows, added)
        done = shop.dbt("build", "--select", "totals journal", ok="bad" not in pages)
        quarantine_failed(shop.engine, done.result.results)  # type: ignore[union-attr]  # dbt's
    assert shop.rows("select page, n from demo.totals order by page") == [("a", 2), ("b", 1), ("c", 1)]
    assert shop.rows("select id from demo.journal order by id") == [(0,), (1,), (20,), (21,)]
    assert shop.rows("select id from demo.journal__dead_letter order by id") == [(10,), (11,)]
    aside = shop.rows(
        "select page, n, dead_letter_kind from demo.totals__dead_letter order by n, dead_letter_kind"
    )
    assert set(aside) >= {("a", 2, "+U"), ("bad", 1, "+I")}


@pytest.mark.nightly
def test_the_first_rows_of_a_model_are_not_put_aside(shop: Shop) -> None:
    """There is nothing to go on from: it stays red."""
    put(shop, 1, None)
    shop.write("models/t.yml", "models: [{name: copy, columns: [{name: v, data_tests: [not_null]}]}]")
    with running(shop, "--select", "copy", "--test", "--on-red", "dead_letter") as child:
        output = child.communicate(timeout=PATIENCE_SECONDS)[0]
    assert child.returncode == 1, output
    assert "red: not_null_copy_v" in output
    assert quarantine(shop) == []


@pytest.mark.nightly
def test_a_red_test_ends_it_with_nothing_published(shop: Shop) -> None:
    """With --test each round is staged and tested first."""
    put(shop, 1, "a")
    shop.write("models/t.yml", "models: [{name: copy, columns: [{name: v, data_tests: [not_null]}]}]")
    with running(shop, "--select", "copy", "--test") as child:
        wait_until(lambda: copied(shop) == {1: "a"}, child)
        put(shop, 2, None)
        output = child.communicate(timeout=PATIENCE_SECONDS)[0]
    assert child.returncode == 1, output
    assert "red: not_null_copy_v" in output
    assert copied(shop) == {1: "a"}
