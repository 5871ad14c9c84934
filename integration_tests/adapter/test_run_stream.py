"""`tablestore run-stream`: a process that keeps a model up until it is asked to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import yaml

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import TableSpec, WriteSpec

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
