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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from integration_tests.packages.page import RECORD, failures, summarise, write_page
from integration_tests.packages.projects import PROJECTS, ForeignProject
from integration_tests.packages.workspace import PROFILE, Workspace, make_workspace, missing_checkouts

FOLDER_ENV = "TABLESTORE_DBT_PACKAGES"


def run_project(project: ForeignProject, checkouts: Path, work: Path) -> dict[str, Any]:
    """{"commands": [{command, status}], "nodes": {id: [status, message]}} of all commands; the last one counts."""
    workspace = make_workspace(project, checkouts, work)
    version = yaml.safe_load((checkouts / project.checkout / "dbt_project.yml").read_text("utf-8")).get(
        "version", ""
    )
    found: dict[str, Any] = {"version": str(version), "commands": [], "nodes": {}}
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
    """0 when each project with checkouts ran, and every failure has a reason."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    if FOLDER_ENV not in os.environ:
        print(f"set {FOLDER_ENV} to a folder with checkouts of dbt packages; see docs/packages.md")
        return 2
    checkouts = Path(os.environ[FOLDER_ENV])
    known = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    is_fine = True
    for project in PROJECTS:
        if asked.names and not {project.name, project.checkout} & set(asked.names):
            continue
        missing = missing_checkouts(project, checkouts)
        if missing:
            print(f"{project.name}: skipped, not in {FOLDER_ENV}: {', '.join(missing)}")
            continue
        print(project.name, flush=True)
        with _folder(asked.keep, project.name) as work:
            found = run_project(project, checkouts, work)
        known[project.name] = summarise(project, found)
        RECORD.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
        write_page()
        is_fine &= _tell(project, found)
    return int(not is_fine)


def _tell(project: ForeignProject, found: Mapping[str, Any]) -> bool:
    """Whether all is well or explained."""
    bad = list(failures(found))
    print(f"  {len(found['nodes']) - len(bad)} of {len(found['nodes'])}")
    broken = [one for one in found["commands"] if one["status"] == 2]
    for one in broken:
        print(f"    dbt {one['command']}: {one['says']}")
    for node, status, why in bad:
        print(f"    {status} {node}: {project.reason(node) or why[:600]}", flush=True)
    return not broken and all(project.reason(node) for node, _, _ in bad)


if __name__ == "__main__":
    sys.exit(main())
