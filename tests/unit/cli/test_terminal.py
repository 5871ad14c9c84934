"""What the command sends to a terminal, whatever a warehouse holds and the terminal can show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.cli.command_list import ENTRIES
from tablestore_engine.cli.main import COMMANDS

from .conftest import Run

_EVIL = "\x1b]0;owned\x07\x9b2J\u202e\nTS0000 forged"


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A warehouse whose table has control characters in its comment, a column's name and comment, and its values."""
    folder = tmp_path / "warehouse"
    rows = pa.table({"id": [1], f"n{_EVIL}": [f"värde {_EVIL}"]})
    with Engine(str(folder)) as engine:
        engine.write("demo.t", rows, WriteSpec(TableSpec(primary_key=("id",), comment=_EVIL)))
        engine.set_comments("demo.t", f"comment {_EVIL}", {"id": _EVIL})
        engine.write(
            "demo.t", rows.set_column(1, f"n{_EVIL}", [["x"]]), WriteSpec(TableSpec(primary_key=("id",)))
        )
    return folder


_COMMANDS = {
    "tables": ("show",),
    "table": ("show", "demo.t"),
    "snapshots": ("snapshots", "demo.t"),
    "diff": ("diff", "demo.t", "1", "2"),
    "changelog": ("changelog", "demo.t", "--since", "0"),
    "missing": ("show", "demo.none\x1b[2J"),
    "tag": ("tag", "create", "demo.t", _EVIL),
}


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("words", _COMMANDS.values(), ids=_COMMANDS)
def test_no_control_character_is_sent(evil: Path, run: Run, words: tuple[str, ...], as_json: bool) -> None:
    """Listings, cells, facts, errors and JSON hold line breaks of our own only."""
    done = run(*words, "--warehouse", str(evil), *(["--json"] if as_json and words[0] != "tag" else []))
    for text in (done.out, done.err):
        assert all(char.isprintable() for char in text.replace("\n", "")), repr(text)
        assert not any(line.startswith("TS0000") for line in text.splitlines())
    assert done.out or done.err


def test_json_keeps_the_value(evil: Path, run: Run) -> None:
    """Escaping is JSON's own: a program reads back the very name and value."""
    done = run("changelog", "demo.t", "--since", "0", "--warehouse", str(evil), "--json")
    assert {f"n{_EVIL}", f"värde {_EVIL}"} <= set(_texts(done.json))


def _texts(document: Any) -> Iterator[str]:
    """Every name and every text in a JSON document."""
    if isinstance(document, dict):
        yield from document
        document = list(document.values())
    if isinstance(document, list):
        for part in document:
            yield from _texts(part)
    elif isinstance(document, str):
        yield document


_ASCII: dict[str, Any] = {
    "env": {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    "capture_output": True,
}
_EVERY_HELP = """
import sys
from tablestore_engine.cli.main import main
for name in sys.argv[1:]:
    try:
        main([name, "--help"])
    except SystemExit as ended:
        assert not ended.code, name
"""


def _in_ascii(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "tablestore_engine.cli.main", *words],
        check=False,
        **_ASCII,
    )


@pytest.mark.nightly  # by day control characters, and the other terminals of this file
def test_a_terminal_that_knows_only_ascii(evil: Path) -> None:
    """A real process with an ASCII output: tables, JSON, errors and help come out whole, with stand-ins."""
    place = ("--warehouse", str(evil))
    table = _in_ascii("changelog", "demo.t", "--since", "0", *place)
    assert table.returncode == 0, table.stderr
    assert b"--  " in table.stdout
    assert rb"v\xe4rde \x1b" in table.stdout
    document = _in_ascii("show", "demo.t", *place, "--json")
    assert f"comment {_EVIL}" in set(_texts(json.loads(document.stdout)))
    refused = _in_ascii("show", "demo.größe", *place)
    assert (refused.returncode, b"Traceback" in refused.stderr) == (1, False)
    names = [name for name in COMMANDS if not ENTRIES[name].is_passed_on]
    helped = subprocess.run([sys.executable, "-c", _EVERY_HELP, *names], check=False, **_ASCII)
    assert (helped.returncode, helped.stderr) == (0, b"")
    assert helped.stdout.count(b"usage: ") == len(names)
