"""The report is one file that asks nobody, whatever texts are in it; the commands that make it and serve the page."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.cli.main import main
from tablestore_engine.cli.table_report import default_file
from tablestore_engine.cli.ui_page import has_desktop
from tablestore_engine.ui.html_report import collect_report, has_trouble, render_report
from tablestore_engine.ui.page_file import policy
from tests.doses import cases
from tests.unit.ui.conftest import World

DATA = re.compile(r'<script type="application/json" id="page-data">(.*?)</script>', re.DOTALL)


def embedded(text: str) -> Any:
    """The data of a file, as a browser finds it: up to the first end of a script."""
    (found,) = DATA.findall(text)
    return json.loads(found)


def test_report_has_the_table_and_its_differences(shop: World) -> None:
    """Parts, the differences of the newest snapshots, and that of the staged one; the brokers were not asked."""
    report = collect_report(shop.engine, "demo.orders", shop.clock.ms, asks_brokers=False)
    assert not has_trouble(report)
    found = embedded(render_report(report))
    assert found["table"]["facts"]["value"]["rows"] == 678
    assert {"35…36", "36…@staged:run"} <= set(found["differences"])
    assert found["differences"]["35…36"]["value"]["inserted"] == 1
    assert "topic" not in found["table"]


def test_report_of_hostile_texts_has_no_markup(hostile: World) -> None:
    """The data has no `<`; the file is ASCII and has the two scripts and no handler."""
    text = render_report(collect_report(hostile.engine, "demo.hostile", hostile.clock.ms, asks_brokers=False))
    assert text.isascii()
    (data,) = DATA.findall(text)
    assert not set("<>&") & set(data)
    assert len(re.findall(r"<script", text)) == 2
    assert "<script>alert" in json.dumps(embedded(text))


def test_report_connects_to_nobody(shop: World) -> None:
    """Its policy has no connections, and no address of another host is in the file but the names of SVG."""
    text = render_report(collect_report(shop.engine, "demo.orders", shop.clock.ms, asks_brokers=False))
    assert "connect-src" not in policy(connects=False)
    assert policy(connects=False) in text
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.findall(r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval)\b", text)


@pytest.fixture
def run(shop: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`tablestore report …` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("TABLESTORE_KAFKA", "TABLESTORE_KAFKA_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return lambda *words: main(("report", *words, "--warehouse", shop.engine.warehouse))


def test_report_file_is_named_after_the_table(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says where it is; nothing else is left in the folder."""
    assert run("demo.orders", "--html") == 0
    assert "demo.orders.html" in capsys.readouterr().out
    assert [one.name for one in tmp_path.iterdir()] == ["demo.orders.html"]
    assert embedded((tmp_path / "demo.orders.html").read_text())["table"]["name"] == "demo.orders"


def test_report_on_stdout_and_as_json(run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`-` prints the file; --json says where it is."""
    assert run("demo.orders", "--html", "-") == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")
    assert run("demo.customers", "--html", str(tmp_path / "x.html"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(tmp_path / "x.html")


def test_report_of_a_damaged_table_says_so(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is there, the status is 1."""
    assert run("demo.returns", "--html") == 1
    assert "cannot be read" in capsys.readouterr().err
    assert "TS1111" in (tmp_path / "demo.returns.html").read_text()


def test_report_that_cannot_be_made(run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No table, no folder: the error has its code, and an older file stays as it was."""
    assert run("demo.missing", "--html") == 1
    assert "TS1414" in capsys.readouterr().err
    assert run("demo.orders", "--html", str(tmp_path / "no" / "x.html")) == 1
    assert "TS1956" in capsys.readouterr().err
    (tmp_path / "folder.html").mkdir()
    assert run("demo.orders", "--html", str(tmp_path / "folder.html")) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["folder.html"]


@pytest.mark.parametrize(
    ("table", "file"),
    [("demo.orders", "demo.orders.html"), ("../../x.y", "_.._x.y.html"), ("`a`.`b`", "_a_._b_.html")],
)
def test_default_file_stays_in_the_folder(table: str, file: str) -> None:
    """Whatever the name is."""
    assert default_file(table) == file


@pytest.mark.parametrize("number", cases([signal.SIGINT, signal.SIGTERM], 1))
def test_ui_serves_until_it_is_stopped(shop: World, number: signal.Signals) -> None:
    """One line with the address; Ctrl-C is its normal end, as SIGTERM is; no JVM was started."""
    command = [sys.executable, "-m", "tablestore_engine.cli.main", "ui", "--warehouse", shop.engine.warehouse]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "JAVA_HOME": "/nonexistent"}
    with subprocess.Popen(
        [*command, "--no-open"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urllib.request.urlopen(f"{address}api/tables", timeout=60) as answer:
            assert len(json.load(answer)["relations"]) == 6
        process.send_signal(number)
        rest, notes = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "")
    assert "Ctrl-C" in notes
    assert "Traceback" not in notes


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "w"}, "linux", True),
        ({}, "darwin", True),
    ],
)
def test_browser_opens_on_a_desktop_alone(environ: dict[str, str], platform: str, expected: bool) -> None:
    """A browser in the terminal would take the place of the command."""
    assert has_desktop(environ, platform) is expected
