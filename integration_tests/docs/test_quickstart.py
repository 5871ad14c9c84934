"""README's quickstart as a user types it: an empty folder, a fresh environment, one shell.

Steps      build the package's wheel → a new virtual environment → every block of the section in one shell script; a
           block with a file name is written where the shell is; `# exit status 1` behind a command: it must fail
WHY        the installed package is what users have: the source tree is not on its path.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration_tests.docs.project import ROOT
from integration_tests.docs.snippets import Snippet, read_snippets
from tablestore_engine.runtime.java import cache_folder

FAILS = "# exit status 1"
INIT = "dbt init shop"
# Fetched once on a machine. Nothing else of the cache folder: its broker has the topics of others.
DOWNLOADS = ("jre", "kafka-*")
# The number of the adapter in dbt's list, then warehouse, schema, brokers, threads.
NUMBER = (
    "from dbt.version import _get_adapter_plugin_names as names; print([*names()].index('tablestore') + 1)"
)
ANSWERS = f'{{ python -c "{NUMBER}" && echo && echo && tablestore broker url && echo && echo; }} | '


def quickstart() -> tuple[Snippet, ...]:
    """Blocks of the section."""
    text = (ROOT / "README.md").read_text()
    section = text.partition("## Quickstart\n")[2]
    first = text[: text.index(section)].count("\n")
    last = first + section[: section.index("\n## ")].count("\n")
    return tuple(one for one in read_snippets(ROOT / "README.md") if first < one.line <= last)


def as_script(snippets: tuple[Snippet, ...]) -> str:
    """All of it for one shell that stops at the first command that does not end as the text says."""
    lines = ["set -euo pipefail"]
    for one in snippets:
        if one.file_name is not None:
            folder = shlex.quote(str(Path(one.file_name).parent))
            lines += [f"mkdir -p {folder}", f"cat > {one.file_name} <<'THE_FILE'", one.text + "THE_FILE"]
            continue
        for line in one.text.splitlines():
            if line == INIT or line.startswith(f"{INIT} "):
                lines.append(ANSWERS + line)
            elif FAILS in line:
                lines.append(f"if {line.partition('#')[0]}; then echo 'ended well: {line}'; exit 9; fi")
            else:
                lines.append(line)
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Place:
    """`folder` is empty; `environment` has the package and nothing of the source tree."""

    folder: Path
    environment: dict[str, str]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of the user."""
        return subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The wheel of this source tree, installed as `pip install dbt-tablestore` would."""
    base = tmp_path_factory.mktemp("user")
    source, home, cache = base / "source", base / "home", base / "cache"
    for path in (source, home, cache, base / "empty"):
        path.mkdir()
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["xargs", "-0", "cp", "--parents", "-t", str(source)], input=names, cwd=ROOT, check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(base / "dist"), str(source)], check=True)
    venv.create(base / "venv", with_pip=True)
    for kept in (one for pattern in DOWNLOADS for one in cache_folder().glob(pattern)):
        (cache / kept.name).symlink_to(kept)
    found = os.environ.get("PIP_FIND_LINKS", "")
    return Place(
        base / "empty",
        {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("TABLESTORE", "DBT"))
            },
            "HOME": str(home),
            "TABLESTORE_CACHE": str(cache),
            "PATH": f"{base / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PIP_FIND_LINKS": f"{base / 'dist'} {found}".strip(),
            "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
            "PIP_QUIET": "1",
            "PYTHONHASHSEED": "0",  # dbt numbers the adapters in the order of a set
        },
    )


@pytest.mark.nightly  # by day test_init_project.py, and integration_tests/demo, cold as well
def test_the_quickstart_runs_from_an_empty_folder(place: Place) -> None:
    """Red holds snapshot and topic back, the correction is published, and no consumer sees what was red."""
    try:
        script = place.folder.parent / "quickstart.sh"
        script.write_text(as_script(quickstart()))
        done = place.run("bash", str(script))
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        assert "PASS consumers_get_an_update_and_a_delete" in said.replace("orders::", "")
        published = re.findall(r"demo\.orders published: (.*)", said)
        assert published[0] == "snapshot 1 (+3 ~0 -0) · kafka orders[0] 0..3"
        assert len(published) == 2
        assert "not_null_orders_amount" in said
        messages = [line for line in done.stdout.splitlines() if line.startswith("{")]
        assert messages
        assert not any('"amount":null' in line.replace(" ", "") for line in messages)
    finally:
        place.run("tablestore", "broker", "stop")


def test_the_script_has_every_block() -> None:
    """Files, commands and a failing command: nothing of the section is left out."""
    script = as_script(quickstart())
    for one in quickstart():
        assert one.text.splitlines()[-1] in script
    assert FAILS in (ROOT / "README.md").read_text()
    assert script.count("if dbt build") == 1
    assert ANSWERS in script
