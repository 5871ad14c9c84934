"""`tablestore init`: the quickstart as a dbt project with a profile, in an empty folder.

INVARIANT  no file is overwritten: each is created exclusively, and a folder with visible files is refused.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from tablestore_engine.cli.output import print_json, write_out
from tablestore_engine.cli.project_files import project_files, project_name
from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.storage_errors import explained

Run = Callable[[argparse.Namespace], int]


def _register(parser: argparse.ArgumentParser) -> Run:
    text = "an empty folder, created if it is missing (default: this one)"
    parser.add_argument("folder", nargs="?", default=".", help=text)
    text = "Kafka brokers: the model then publishes its changes to the topic orders"
    parser.add_argument("--brokers", metavar="HOST:PORT", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return _run


def _run(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder).expanduser().absolute()
    name = project_name(folder.resolve().name)
    files = project_files(name, arguments.brokers)
    with explained(str(folder)):
        check_empty(folder)
        files = {one: text for one, text in files.items() if one[0] != "." or not (folder / one).exists()}
        write_files(folder, files)
    if arguments.json:
        print_json({"folder": str(folder), "project": name, "files": list(files)})
        return 0
    write_out(f"project {name} in {folder}: {', '.join(files)}")
    cd = "" if arguments.folder == "." else f"cd {shlex.quote(arguments.folder)}\n"
    write_out(f"next:\n{cd}dbt build\ntablestore head demo.orders")
    return 0


def check_empty(folder: Path) -> None:
    """Hidden files (.git, .venv) do not count. Raises FixRequest TS1944."""
    if not folder.exists():
        return
    is_folder = folder.is_dir()
    found = sorted(path.name for path in folder.iterdir() if path.name[0] != ".") if is_folder else []
    if found or not is_folder:
        what = "it has a dbt project" if "dbt_project.yml" in found else f"it has {', '.join(found[:3])}"
        raise FixRequest(
            "TS1944",
            f"no project is created in {folder}",
            why=what if is_folder else "it is a file",
            fix="name a folder that is empty or does not exist: tablestore init FOLDER",
        )


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Raises FileExistsError for a file that was created meanwhile."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)


REGISTER = {"init": _register}
