"""The command `tablestore` itself: overview, help, wrong words."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.cli.command_list import ENTRIES, GROUPS, overview
from tablestore_engine.cli.main import COMMANDS, main

from .conftest import Run

ROOT = Path(__file__).parents[3]
PASSED_ON = {name for name, one in ENTRIES.items() if one.is_passed_on}  # their help is another program's


@pytest.mark.parametrize("name", sorted({*COMMANDS} - PASSED_ON))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help of each command says what it does and every argument of it has a text."""
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert COMMANDS[name][1] in shown
    assert "--json" in shown or name in {"branch", "tag", "completion", "iceberg", "partition"}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_documented(name: str) -> None:
    """docs/commands.md has a chapter for each command."""
    assert f"\n## {name}\n" in (ROOT / "docs" / "commands.md").read_text()


def test_overview_lists_commands_by_task(run: Run) -> None:
    """Without a word, or with --help, groups and commands are those of the table of docs/commands.md, with a text."""
    done = run()
    assert (done.status, done.err) == (0, "")
    assert done.out == run("--help").out == run("help").out
    table = re.findall(r"^\| ([a-z ]+) \| (\[.*) \|$", (ROOT / "docs/commands.md").read_text(), re.MULTILINE)
    documented = {task: re.findall(r"\[([\w-]+)\]", names) for task, names in table}
    assert {task: list(group) for task, group in GROUPS.items()} == documented
    for name, entry in ENTRIES.items():
        assert re.search(rf"^  {name} +{re.escape(entry.text)}$", done.out, re.MULTILINE)


def test_overview_names_the_package_of_other_commands() -> None:
    """A command of a package that we do not know is listed with its package; ours need their entry point."""
    shown = overview({"export": "acme-tools"})
    assert "of other packages\n  export " in shown
    assert "from acme-tools" in shown
    assert "run-stream" not in shown


def test_version_imports_no_package() -> None:
    """Four versions, from the metadata: pyspark and dbt are not imported."""
    probe = (
        "import sys; from tablestore_engine.cli.main import main; main(['--version']); "
        "assert not {'pyspark', 'dbt', 'pyarrow'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == ["dbt-tablestore", "python", "pyspark", "dbt-core"]
    assert f"pyspark {version('pyspark')}" in done.stdout


def test_version_of_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """A package that is not installed is named as such."""

    def find(name: str) -> str:
        if name == "dbt-core":
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr("tablestore_engine.cli.main.version", find)
    assert run("-V").out.splitlines()[-1] == "dbt-core is not installed"


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("snapshot", "did you mean snapshots?"),
        ("run_stream", "did you mean run-stream?"),
        ("version", "did you mean --version?"),
        ("xyzzy", None),
    ],
)
def test_unknown_command_goes_to_stderr(run: Run, word: str, near: str | None) -> None:
    """Exit status 2, nothing on stdout, the nearest names on stderr."""
    done = run(word)
    assert (done.status, done.out) == (2, "")
    assert f"there is no command '{word}'" in done.err
    assert ("did you mean" in done.err) is (near is not None)
    assert near is None or near in done.err


def test_wrong_arguments_end_with_2(run: Run) -> None:
    """Wrong usage has exit status 2, other than an error of ours."""
    with pytest.raises(SystemExit) as ended:
        run("files", "demo.orders", "--snapshot", "one")
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("broker", "stxrt"), "; did you mean start?"),
        (("tag", "crxate", "demo.orders", "x"), "did you mean create?"),
        (("head", "demo.orders", "--colxmns", "id"), "; did you mean --columns instead of --colxmns?"),
        (("head", "demo.orders", "--colxmns=id"), "; did you mean --columns instead of --colxmns?"),
        (
            ("tag", "create", "demo.orders", "x", "--snapshxt", "1"),
            "did you mean --snapshot instead of --snapshxt?",
        ),
        (("sync", "shop", "--intx", "demo"), "required: --into; did you mean --into instead of --intx?"),
        (("staged", "publixh", "demo.orders"), "there is no action 'publixh'"),
        (("staged", "publixh", "demo.orders"), "did you mean publish?"),
        (("staged", "demo.orders", "publish"), "did you mean publish demo.orders?"),
        (("staged", "list", "demo", "more"), "list takes at most a table or a database"),
        (("staged", "publish"), "publish takes db.table"),
    ],
)
def test_misspelled_words_end_with_2_and_the_nearest_name(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], text: str
) -> None:
    """Actions and options, also those of subcommands and of a missing required option."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert printed.err.startswith("usage: tablestore ")
    assert text in printed.err, printed.err


def test_a_strange_option_is_reported_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing near has no hint; the word's control characters do not reach the terminal."""
    with pytest.raises(SystemExit):
        main(["head", "demo.orders", "--zzzz\x1b[2J"])
    printed = capsys.readouterr().err
    assert "unrecognized arguments: --zzzz" in printed
    assert "\x1b" not in printed
    assert "did you mean" not in printed


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("head", "demo.ordxrs"), "demo.orders"),
        (("head", "dmo.order"), "demo.orders"),
        (("staged", "demp"), "demo"),
        (("staged", "orders"), "demo.orders"),
        (("staged", "big"), "demo.big"),
        (("staged", "ordxrs"), "demo.orders"),
        (("staged", "shxw"), "show"),
        (("staged", "zzz"), None),
        (("gc", "orders"), "demo.orders"),
        (("staged", "demo.bigg"), "demo.big"),
        (("staged", "show", "demo.bigg"), "demo.big"),
        (("show", "demo.bigg"), "demo.big"),
        (("show", "demo.ordxrs"), "demo.orders"),
        (("report", "demo.bigg", "--html"), "demo.big"),
        (("head", "demo.bigg"), None),
        (("head", "demo.xyz"), None),
        (("head", "demo.big"), None),
        (("head", "other.orders"), None),
    ],
)
def test_a_missing_table_is_reported_with_the_nearest_name(
    run: Run, warehouse: Path, words: tuple[str, ...], near: str | None
) -> None:
    """Of the same database, or of the nearest one: views where a view is taken; folders without a table are no name.

    A word without a database is a table's name, then a near database or action, then a near table's name.
    """
    (warehouse / "demo.db" / "ordxrs").mkdir()
    (warehouse / "demo.db" / "ordxrs\x1b[2J").mkdir()
    done = run(*words)
    assert (done.status, done.out) == (1, "")
    assert ("did you mean" in done.err) is (near is not None), done.err
    assert near is None or done.err.endswith(f"did you mean {near}?\n")


def test_a_view_is_named_as_one_where_tables_are_taken(run: Run) -> None:
    """`head` of a view says how its rows are read."""
    done = run("head", "demo.big")
    assert done.status == 1
    assert "demo.big is a view" in done.err
    assert 'tablestore sql "select * from demo.big"' in done.err


def test_an_unknown_word_after_staged_may_be_an_action(run: Run) -> None:
    """The error names the actions; an action after the table is put before it."""
    assert "there is no database or action shxw" in (found := run("staged", "shxw").err)
    assert "actions are list, show, drop, publish" in found
    assert "action" not in run("gc", "shxw").err


def test_tables_of_a_name_in_several_databases_are_all_named(run: Run, engine: Engine) -> None:
    """No choice is made for the user."""
    engine.create_database("shop")
    engine.create_view("shop.orders", "select 1 as one")
    assert run("staged", "orders").err.endswith("did you mean demo.orders or shop.orders?\n")


def test_debug_shows_the_traceback(run: Run) -> None:
    """--debug lets the error through."""
    from tablestore_engine.errors import NotFound

    with pytest.raises(NotFound, match="TS1414"):
        run("files", "demo.nope", "--debug")
