"""The command `tablestore` itself: overview, help, wrong words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.cli.main import COMMANDS, main

from .conftest import Run

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help of each command says what it does and every argument of it has a text."""
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert COMMANDS[name][1] in shown
    assert "--json" in shown or name == "tag"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_documented(name: str) -> None:
    """docs/commands.md has a chapter for each command."""
    assert f"\n## {name}\n" in (ROOT / "docs" / "commands.md").read_text()


def test_overview(run: Run) -> None:
    """Without a word, or with an unknown one, the commands are listed; only the latter is a mistake."""
    assert run().status == 0
    done = run("snapshot")
    assert done.status == 2
    assert all(name in done.out for name in COMMANDS)


def test_wrong_arguments_end_with_2(run: Run) -> None:
    """Wrong usage has exit status 2, other than an error of ours."""
    with pytest.raises(SystemExit) as ended:
        run("diff", "demo.orders", "one")
    assert ended.value.code == 2


def test_debug_shows_the_traceback(run: Run) -> None:
    """--debug lets the error through."""
    from tablestore_engine.errors import NotFound

    with pytest.raises(NotFound, match="TS1414"):
        run("files", "demo.nope", "--debug")
