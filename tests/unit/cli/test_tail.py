"""tail on a real warehouse: what is printed, where it begins and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec

from .conftest import KEYED, Run, orders

HANG_SECONDS = 300  # not a measure: by then it never ends
CHANGES = [
    "1 +I  order_id=1  customer=ann  amount=1.5",
    "1 +I  order_id=2  customer=bob  amount=2.5",
    "1 +I  order_id=3  customer=cy  amount=3.5",
    "2 -U  order_id=2  customer=bob  amount=2.5",
    "2 +U  order_id=2  customer=bob  amount=2.0",
    "2 +I  order_id=4  customer=dee  amount=4.0",
    "3 -D  order_id=1  customer=ann  amount=1.5",
]


def test_a_line_for_each_row(run: Run) -> None:
    """Snapshot, kind, columns."""
    assert run("tail", "demo.orders", "--from", "earliest", "--until", "now").out.splitlines() == CHANGES
    assert run("tail", "demo.orders", "--snapshot", "3", "--until", "3").out.splitlines() == CHANGES[-1:]
    assert run("tail", "demo.orders", "--until", "now").out == ""


def test_json_is_an_object_on_each_line(run: Run) -> None:
    """For pipes: no line waits for the last one."""
    done = run(
        "tail", "demo.orders", "--from", "earliest", "--until", "1", "--columns", "amount, customer", "--json"
    )
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"_snapshot_id": 1, "_row_kind": "+I", "amount": amount, "customer": customer}
        for amount, customer in ((1.5, "ann"), (2.5, "bob"), (3.5, "cy"))
    ]


def test_where_a_table_says_to_begin(run: Run, engine: Engine) -> None:
    """Its scan.mode, when the command does not say it."""
    full = TableSpec(primary_key=("order_id",), options={"log.scan": "full"})
    engine.write("demo.full", orders((1, "ann", 1.5), (2, "bob", 2.5)), WriteSpec(table=full))
    assert len(run("tail", "demo.full", "--until", "now").out.splitlines()) == 2
    assert run("tail", "demo.full", "--from", "latest", "--until", "now").out == ""


def test_a_time(run: Run, engine: Engine) -> None:
    """UTC, or milliseconds; else TS1941."""
    second = engine.table("demo.orders").snapshots()[1].time_millis
    first_of_it = run("tail", "demo.orders", "--timestamp", str(second), "--until", "now").out.splitlines()
    assert first_of_it in (CHANGES[3:], CHANGES)  # two commits within a millisecond
    assert (
        run("tail", "demo.orders", "--timestamp", "2001-01-01", "--until", "now").out.splitlines() == CHANGES
    )
    assert "TS1941" in run("tail", "demo.orders", "--timestamp", "yesterday").err
    assert "TS1332" in run("tail", "demo.orders", "--timestamp", "9999-01-01T00:00+00:00").err
    assert "TS1331" in run("tail", "demo.orders", "--from", "latest", "--snapshot", "1").err


def test_a_consumer_goes_on(run: Run, engine: Engine) -> None:
    """Each change is printed once by all the calls together."""
    words = ("tail", "demo.orders", "--consumer", "c", "--from", "earliest", "--until")
    assert run(*words, "2").out.splitlines() == CHANGES[:6]
    assert run(*words, "now").out.splitlines() == CHANGES[6:]
    engine.write("demo.orders", orders((9, "eve", 9.0)), WriteSpec(table=KEYED))
    assert run("consumers", "demo.orders", "--json").json[0]["lag_rows"] == 1
    assert len(run(*words, "now").out.splitlines()) == 1
    assert run("consumers", "demo.orders", "--json").json[0]["lag_rows"] == 0


def test_consumers(run: Run) -> None:
    """Listed, moved, forgotten."""
    assert run("consumers", "demo.orders").err == "demo.orders has no consumers\n"
    shown = run("consumers", "demo.orders", "--reset", "c", "--to", "2").out
    assert shown.splitlines()[0].split("  ")[:2] == ["consumer", "next snapshot"]
    [found] = run("consumers", "demo.orders", "--reset", "c", "--json").json
    assert (found["consumer"], found["next_snapshot"], found["lag_snapshots"]) == ("c", 4, 0)
    assert "TS1354" in run("consumers", "demo.orders", "--reset", "c", "--to", "9").err
    assert "TS1942" in run("consumers", "demo.orders", "--to", "2").err
    assert "TS1355" in run("consumers", "demo.orders", "--delete", "d").err
    assert run("consumers", "demo.orders", "--delete", "c").out == "demo.orders: consumer c is forgotten\n"


def test_the_past_is_a_page(run: Run, engine: Engine) -> None:
    """The newest 100 rows of what is there, and a note; --all, --limit and --json give more, a consumer gets all."""
    more = orders(*((number, "z", 1.0) for number in range(100, 300)))
    engine.write("demo.orders", more, WriteSpec(table=KEYED))
    words = ("tail", "demo.orders", "--from", "earliest", "--until", "now")
    page = run(*words)
    assert len(page.out.splitlines()) == 100
    assert page.out.splitlines()[-1].startswith("4 +I  order_id=299 ")
    assert page.err == "the newest 100 of 207 rows; see all with --all, or more with --limit N\n"
    assert run(*words, "--limit", "2").out.splitlines() == page.out.splitlines()[-2:]
    for flags in (("--all",), ("--json",), ("--consumer", "c")):
        done = run(*words, *flags)
        assert (len(done.out.splitlines()), done.err) == (207, "")
    assert "TS1939" in run(*words, "--consumer", "d", "--limit", "2").err


# a process of its own -------------------------------------------------------------------------------------------


@pytest.fixture
def following(warehouse: Path) -> Iterator[subprocess.Popen[str]]:
    """`tail` of all changes, which waits for more."""
    command = [
        sys.executable,
        "-m",
        "tablestore_engine.cli.main",
        "tail",
        "demo.orders",
        "--from",
        "earliest",
    ]
    words = [*command, "--warehouse", str(warehouse), "--interval", "3600"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process
    if process.poll() is None:
        process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


def test_ctrl_c_ends_it_well(following: subprocess.Popen[str]) -> None:
    """No traceback, at once, though it would wait for an hour."""
    assert following.stdout is not None
    lines = [following.stdout.readline() for _ in CHANGES]
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=HANG_SECONDS)
    assert (following.returncode, [line.rstrip() for line in lines], out, err) == (0, CHANGES, "", "")


@pytest.mark.nightly  # by day following, Ctrl-C
def test_it_ends_when_nobody_reads(following: subprocess.Popen[str]) -> None:
    """As behind `| head -1`: also while it waits for changes, and not with an error."""
    assert following.stdout is not None
    following.stdout.readline()
    os.close(following.stdout.detach().detach().fileno())  # type: ignore[attr-defined]
    assert following.wait(timeout=HANG_SECONDS) == 0
    assert following.stderr is not None
    assert following.stderr.read() == ""


def test_following_prints_the_page_and_then_each_change(warehouse: Path, engine: Engine) -> None:
    """The page appears while it waits, not at the end; what is committed later is not cut."""
    words = ("tail", "demo.orders", "--from", "earliest", "--limit", "1", "--interval", "0.1")
    command = [sys.executable, "-m", "tablestore_engine.cli.main", *words, "--warehouse", str(warehouse)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().rstrip() == CHANGES[-1]
        engine.write("demo.orders", orders((8, "eve", 1.0), (9, "eve", 9.0)), WriteSpec(table=KEYED))
        later = [process.stdout.readline().rstrip() for _ in range(2)]
        assert later == [
            "4 +I  order_id=8  customer=eve  amount=1.0",
            "4 +I  order_id=9  customer=eve  amount=9.0",
        ]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_SECONDS)
        assert (process.returncode, out) == (0, "")
        assert err.startswith("the newest 1 of 7 rows")
    finally:
        process.kill()
        process.wait()
