"""Completion: what a TAB offers, how fast, and in the real shells that are installed (bash, zsh, fish)."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generate import COMPLETION, render_completion
from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.cli import warehouse_names
from tablestore_engine.cli.command_list import ENTRIES
from tablestore_engine.cli.completion import SHELLS
from tablestore_engine.format.layout import BRANCH_PREFIX
from tablestore_engine.store.stage import staging
from tests.doses import case_rows, cases

from .conftest import KEYED, Run, orders

BIN = Path(sys.executable).parent
_SETUP = {
    "bash": "source <(tablestore completion bash)",
    "zsh": "autoload -Uz compinit; compinit -u -D; source <(tablestore completion zsh)",
    "fish": "tablestore completion fish | source",
}
_SHELL_FLAGS = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-i"], "fish": ["--no-config", "-i"]}


@pytest.fixture
def filled(warehouse: Path, engine: Engine) -> Path:
    """The warehouse with a tag, a consumer and a staged snapshot of demo.orders."""
    table = engine.table("demo.orders")
    table.tag("monthly", 2)
    table.reset_consumer("billing", 2)
    table.write(orders((9, "eve", 9.0)), WriteSpec(table=KEYED, stage="try"))
    return warehouse


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TABLESTORE_", "_ARG"))}
    return {**kept, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **more}


def offered(line: str, folder: Path) -> list[str]:
    """What `tablestore` answers to a TAB at the end of the line."""
    answer = folder / "answer"
    answer.unlink(missing_ok=True)
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_SHELL": "bash", "_ARGCOMPLETE_SUPPRESS_SPACE": "1"}
    asked |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    asked |= {"_ARGCOMPLETE_STDOUT_FILENAME": str(answer), "_ARGCOMPLETE_COMP_WORDBREAKS": " \t\n"}
    done = subprocess.run(
        ["tablestore"], cwd=folder, env=_environment(**asked), capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("", "")
    return answer.read_text().split("\n") if answer.read_text() else []


_TABLES = ["demo.events", "demo.orders"]


@pytest.mark.parametrize(
    ("line", "found"),
    case_rows(
        [
            ("tablestore snap", ["snapshots"]),
            ("tablestore run", ["run-stream"]),
            ("tablestore run-stream --on-red ", ["stop", "hold", "dead_letter"]),
            ("tablestore head ", _TABLES),
            ("tablestore head demo.o", ["demo.orders"]),
            ("tablestore show ", ["demo", *_TABLES]),
            ("tablestore head demo.orders --sn", ["--snapshot"]),
            ("tablestore head demo.orders --snapshot ", ["3", "2", "1", "monthly", "@staged"]),
            ("tablestore diff demo.orders 1 @", ["@staged"]),
            ("tablestore rollback demo.orders --to ", ["3", "2", "1"]),
            ("tablestore restore demo.orders --tag ", ["monthly"]),
            ("tablestore tag d", ["delete"]),
            ("tablestore tag delete demo.orders ", ["monthly"]),
            ("tablestore consumers demo.orders --delete ", ["billing"]),
            ("tablestore publish demo.orders --staged ", ["try"]),
            ("tablestore staged ", ["list", "show", "publish", "drop", *_TABLES]),
            ("tablestore staged show ", _TABLES),
            ("tablestore staged show demo.orders ", ["try"]),
            ("tablestore ingest maxwell", ["maxwell-json"]),
            ("tablestore sync shop --into ", ["demo"]),
            ("tablestore head demo.orders --columns ", []),
            ("tablestore head demo.none --snapshot ", []),
            ("tablestore head ../demo.orders --snapshot ", []),
        ],
        12,
    ),
)
def test_what_a_tab_offers(filled: Path, line: str, found: list[str]) -> None:
    """Commands, options, choices, and names of the warehouse where an argument takes them."""
    assert offered(line, filled.parent) == found


def test_a_named_warehouse_counts(filled: Path, tmp_path: Path) -> None:
    """--warehouse before the argument; on an object store there are no names, and no error."""
    away = tmp_path / "away"
    away.mkdir()
    assert offered("tablestore head ", away) == _TABLES  # the one of the folder above
    assert offered("tablestore head --warehouse /nowhere ", away) == []
    assert offered(f"tablestore head --warehouse {filled} demo.o", away) == ["demo.orders"]
    assert offered("tablestore head --warehouse s3://bucket/wh ", away) == []
    assert offered("tablestore show --warehouse ware", filled.parent) == ["warehouse/"]


def test_names_with_control_characters_are_not_offered(filled: Path) -> None:
    """A name would act on the terminal that lists it."""
    (filled / "demo.db" / "orders" / "tag" / "tag-\x1b[2J").write_text("")
    assert offered("tablestore restore demo.orders --tag ", filled.parent) == ["monthly"]


def test_the_staged_folder_is_that_of_the_store() -> None:
    """Completion names it without importing the store."""
    assert warehouse_names.STAGED_FOLDER == BRANCH_PREFIX + staging.STAGED_PREFIX


def test_the_arguments_are_those_of_the_commands() -> None:
    """completion.json is what the parsers say (`python -m docs.generate` writes it), and has every command."""
    assert COMPLETION.read_text("utf-8") == render_completion()
    assert set(json.loads(COMPLETION.read_text("utf-8"))) == set(ENTRIES)


def test_a_tab_imports_no_engine(filled: Path) -> None:
    """Neither pyspark nor pyarrow nor a command: that is what makes it quick."""
    probe = (
        "import os, sys; os._exit = sys.exit; sys.argv = ['tablestore']\n"
        "from tablestore_engine.cli.main import main\n"
        "try: main()\n"
        "finally: print(sorted({'pyspark', 'pyarrow', 'dbt', 'tablestore_engine.api'} & set(sys.modules)))"
    )
    line = "tablestore head demo.orders --snapshot "
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    asked |= {"_ARGCOMPLETE_STDOUT_FILENAME": str(filled / "answer")}
    command = [sys.executable, "-c", probe]
    done = subprocess.run(
        command, cwd=filled.parent, env=_environment(**asked), capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr
    assert "monthly" in (filled / "answer").read_text()


def test_scripts_name_the_command(run: Run) -> None:
    """Each shell has one; an unknown shell is refused with exit status 2."""
    for shell in SHELLS:
        assert "tablestore" in run("completion", shell).out
    with pytest.raises(SystemExit) as ended:
        run("completion", "tcsh")
    assert ended.value.code == 2


# in real shells -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _terminal(words: list[str], folder: Path, environment: dict[str, str]) -> Iterator[int]:
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover
        os.chdir(folder)
        os.execvpe(words[0], words, environment)
    try:
        yield terminal
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(terminal)


def _read_until(terminal: int, wanted: str, seconds: float = 300) -> str:
    said, end = "", time.monotonic() + seconds
    while wanted not in said:
        ready, _, _ = select.select([terminal], [], [], max(end - time.monotonic(), 0))
        assert ready, f"{wanted!r} did not come, but {said!r}"
        said += os.read(terminal, 65536).decode(errors="replace")
    return said


@pytest.mark.parametrize("shell", cases(SHELLS, 1))
def test_a_tab_in_a_real_shell(shell: str, filled: Path, tmp_path: Path) -> None:
    """Typed on a terminal: a command, a table and @staged are completed, and the line runs as it was completed."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".zshrc").write_text("")
    environment = _environment(HOME=str(home), ZDOTDIR=str(home), TERM="xterm", XDG_CONFIG_HOME=str(home))
    environment |= {"XDG_DATA_HOME": str(home), "EDITOR": "emacs", "LC_ALL": "C.UTF-8"}
    with _terminal([shell, *_SHELL_FLAGS[shell]], filled.parent, environment) as terminal:
        os.write(terminal, f"{_SETUP[shell]}; echo REA''DY\n".encode())
        _read_until(terminal, "READY")
        os.write(terminal, b"tablestore hea\tdemo.ord\t--snapshot @sta\t\n")
        assert "order_id" in _read_until(terminal, "eve")  # a row of the staged snapshot alone
