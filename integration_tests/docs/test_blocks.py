"""Each code block of README and docs/*.md is executed, or stands in a list here: with the test that runs it, or with
the reason why nobody does.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from integration_tests.docs.project import ROOT
from integration_tests.docs.snippets import Snippet, is_of_project, read_blocks
from tablestore_engine.cli.main import find_registers, make_parser

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = {"bash", "python", "sql"}  # test_docs.py
_INTEROP = "integration_tests/interop"
# (page, file) → the test that runs the file, and a word of it by which it finds the file
ELSEWHERE = {
    **{("engines.md", f"flink/{name}.sql"): (f"{_INTEROP}/test_flink_page.py", "flink/")
       for name in ("read", "follow", "write", "write_and_compact", "compact", "create")},
    **{("engines.md", f"consumers/read_{name}.py"): (f"{_INTEROP}/test_iceberg_page.py", "consumers/")
       for name in ("duckdb", "pyiceberg", "pypaimon", "datafusion")},
    **{("engines.md", f"spark/{name}"): (f"{_INTEROP}/test_spark_page.py", name)
       for name in ("read.sql", "write.sql", "read_iceberg.py", "paimon.conf", "iceberg.conf")},
    ("engines.md", "hive/create.sql"): (f"{_INTEROP}/test_hive.py", "hive/create.sql"),
    **{("kafka-envelope.md", name): ("integration_tests/docs/page_consumers.py", name)
       for name in ("orders_copy.py", "OrdersCopy.java")},
    ("kafka-envelope.md", "orders_start.py"): ("integration_tests/docs/test_consumers.py", "orders_start"),
    **{("kafka-envelope.md", name): ("integration_tests/docs/test_flink_consumers.py", name)
       for name in ("orders_upsert.sql", "orders_json.sql", "orders_all.sql")},
    ("README.md", "consume.py"): ("integration_tests/docs/test_quickstart.py", "quickstart"),
}  # fmt: skip
_DATABASE = "needs a PostgreSQL server; integration_tests/kafka does the same on one"
_BLOCKS = "does not end by itself; integration_tests/ui runs the server"
_INSTALLS = "installs a package from the registry"
_USERS = "needs a broker with users; integration_tests/kafka/test_rights.py compares the lines"
_NO_ENGINE = "the engine is not to be had here; the page says so"
# page → beginning of the first line → why nobody runs the block
NOT_RUN = {
    "commands.md": {
        "tablestore connect start": _DATABASE,
        "tablestore sync shop --into shop": _DATABASE,
        "tablestore ui": _BLOCKS,
        "cd quickstart": "continues `tablestore demo`; integration_tests/demo runs it",
        "pip install 'dbt-tablestore[demo-stream]'": f"{_INSTALLS}; integration_tests/demo runs it",
    },
    "databases.md": {
        "pip install 'dbt-tablestore[postgres]'": _DATABASE,
        "alter system set wal_level": _DATABASE,
        "select pg_drop_replication_slot": _DATABASE,
        "tablestore sync shop --into shop --resnapshot": _DATABASE,
        "tablestore connect start shop --anew": _DATABASE,
    },
    "engines.md": {
        "# etc/catalog/lake.properties": _NO_ENGINE,
        "SELECT * FROM lake.demo.orders;": _NO_ENGINE,
        "CREATE EXTERNAL CATALOG": _NO_ENGINE,
        "SELECT * FROM icebergLocal": _NO_ENGINE,
        "CREATE CATALOG INTEGRATION": _NO_ENGINE,
        "# ~/.pyiceberg.yaml": f"is in the user's home; {_INTEROP}/test_iceberg_catalog.py has such a catalog",
        "pip install 'dbt-tablestore[iceberg]'": f"{_INSTALLS}; {_INTEROP}/test_iceberg_catalog.py does the rest",
        "demo.orders, snapshot 2": "output of a command",
    },
    "kafka-envelope.md": {"debezium-json": "messages; tests/unit/log/test_formats.py compares them"},
    "log-system.md": {
        "tablestore log drop --dry-run": "deletes topics; integration_tests/kafka does",
        "kafka-acls.sh --add --allow-principal User:publisher": _USERS,
        "kafka-acls.sh --add --allow-principal User:reader": _USERS,
    },
    "object-stores.md": {"Spark reads data files through the engine": "text of a warning"},
    "ui.md": {"tablestore ui": _BLOCKS},
}


def blocks() -> Iterator[Snippet]:
    """Of all pages."""
    for page in PAGES:
        yield from read_blocks(page)


def reasons(block: Snippet) -> list[str]:
    """The longest beginning in NOT_RUN, of blocks without a language."""
    begins = [] if block.language else NOT_RUN.get(block.page, {})
    return sorted((one for one in begins if block.first_line.startswith(one)), key=len)[-1:]


def is_run_on_its_page(block: Snippet, page: tuple[Snippet, ...]) -> bool:
    """By test_docs.py: a program, keys of a profile, a file of the project, or a module that a program imports."""
    if block.file_name is None:
        return block.language in {*RUN, "yaml"}
    programs = "".join(one.text for one in page if one.language == "python" and one.file_name is None)
    return is_of_project(block) or f"from {block.file_name.removesuffix('.py')} import" in programs


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_block_is_run_or_listed(page: Path) -> None:
    """In one way, not in two."""
    found = read_blocks(page)
    for block in found:
        listed = (block.page, block.file_name) in ELSEWHERE, bool(reasons(block))
        ways = sum((is_run_on_its_page(block, found) and not any(listed), *listed))
        assert ways == 1, f"{block.page}:{block.line}: {block.first_line}"


def test_the_lists_have_no_block_that_is_gone() -> None:
    """Of files and of blocks without a language."""
    files = {(one.page, one.file_name) for one in blocks()}
    assert not ELSEWHERE.keys() - files
    begun = {(one.page, begin) for one in blocks() for begin in reasons(one)}
    assert not {(page, begin) for page, begins in NOT_RUN.items() for begin in begins} - begun


@pytest.mark.parametrize(("key", "place"), ELSEWHERE.items(), ids=[name for _, name in ELSEWHERE])
def test_a_file_that_runs_elsewhere_is_named_there(key: tuple[str, str], place: tuple[str, str]) -> None:
    """In the text of that test."""
    test, word = place
    assert word in (ROOT / test).read_text(), key


@cache
def parsers() -> dict[str, object]:
    """Of all commands."""
    return {name: make_parser(name, register)[0] for name, register in find_registers().items()}


@pytest.mark.parametrize(
    "block", [one for one in blocks() if not one.language], ids=lambda one: f"{one.page}:{one.line}"
)
def test_commands_that_nobody_runs_have_right_arguments(block: Snippet) -> None:
    """Their parsers take them."""
    for line in block.text.splitlines():
        if re.match(r" *tablestore ", line):
            _, name, *words = shlex.split(line, comments=True)
            parsers()[name].parse_args(words)  # type: ignore[attr-defined]
