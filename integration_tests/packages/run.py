"""`make test-packages`: foreign projects as they are, then docs/packages.json and the page.

Steps      1 for each project with its checkouts: a workspace, `dbt deps`, its commands, each a process  2 what each
           node ended with  3 docs/packages.json, docs/packages.md
Usage      TABLESTORE_DBT_PACKAGES=FOLDER python -m integration_tests.packages.run [--keep FOLDER] [NAME …]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from integration_tests.packages.projects import PROJECTS, ForeignProject
from integration_tests.packages.workspace import PROFILE, Workspace, make_workspace, missing_checkouts

FOLDER_ENV = "TABLESTORE_DBT_PACKAGES"
ROOT = Path(__file__).resolve().parent.parent.parent
RECORD = ROOT / "docs" / "packages.json"
_GOOD = frozenset({"success", "pass", "warn", "no-op"})


def run_project(project: ForeignProject, checkouts: Path, work: Path) -> dict[str, Any]:
    """{"commands": [{command, status}], "nodes": {id: [status, message]}} of all commands; the last one counts."""
    workspace = make_workspace(project, checkouts, work)
    found: dict[str, Any] = {"commands": [], "nodes": {}}
    for command in ("deps", *project.commands):
        begin = time.monotonic()
        status, said = _dbt(project, workspace, shlex.split(command), work / "output.txt")
        found["commands"].append({"command": command, "status": status, "says": said})
        print(f"  dbt {command}: exit {status}, {time.monotonic() - begin:.0f} s", flush=True)
        for node in _results(workspace.project / "target" / "run_results.json"):
            found["nodes"][node["unique_id"]] = [node["status"], node.get("message")]
        if status == 2:
            break
    return found


def _dbt(project: ForeignProject, workspace: Workspace, command: Sequence[str], log: Path) -> tuple[int, str]:
    """Exit status, and where it is 2 (no node ran) the last lines."""
    (workspace.project / "target" / "run_results.json").unlink(missing_ok=True)
    where = [] if command[0] == "deps" else ["--profile", PROFILE]
    line = [
        str(Path(sys.executable).parent / "dbt"),
        *command,
        *where,
        "--profiles-dir",
        str(workspace.profiles),
    ]
    environment = {**os.environ, **project.environment, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    done = subprocess.run(
        line,
        cwd=workspace.project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    with log.open("a") as out:
        out.write(f"$ dbt {shlex.join(command)}\n{done.stdout}\n")
    return done.returncode, done.stdout[-1500:] if done.returncode == 2 else ""


def _results(path: Path) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["results"]
    except FileNotFoundError:
        return []
    return found


def failures(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(node, status, first line of why)."""
    for node, (status, message) in found["nodes"].items():
        if status not in _GOOD:
            yield node, status, (message or "").strip()


@contextmanager
def _folder(keep: Path | None, name: str) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory() as made:
            yield Path(made)
    else:
        folder = keep / re.sub(r"\W+", "_", name)
        folder.mkdir(parents=True)
        yield folder


def main() -> int:
    """0 when every project with checkouts ran."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    checkouts = Path(os.environ[FOLDER_ENV])
    for project in PROJECTS:
        if asked.names and project.name not in asked.names and project.checkout not in asked.names:
            continue
        missing = missing_checkouts(project, checkouts)
        if missing:
            print(f"{project.name}: skipped, not in {FOLDER_ENV}: {', '.join(missing)}")
            continue
        print(project.name, flush=True)
        with _folder(asked.keep, project.name) as work:
            found = run_project(project, checkouts, work)
        bad = list(failures(found))
        print(f"  {len(found['nodes']) - len(bad)} of {len(found['nodes'])}")
        for command in found["commands"]:
            if command["status"] == 2:
                print("   ", command["command"], command["says"])
        for node, status, why in bad:
            print(f"   {status} {node}: {why[:600]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
