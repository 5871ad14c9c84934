"""A copy of a foreign project in which its packages are folders beside it, and a profile of ours.

Steps      1 copy the checkout and those of its packages  2 packages.yml of the project names all of them, those of the
           packages name nothing  3 a warehouse and a profile
INVARIANT  the checkouts are only read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from integration_tests.packages.projects import ForeignProject

PROFILE = "foreign"
_SPARK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
_RESOLVED_BY_DBT = ("packages.yml", "dependencies.yml", "package-lock.yml")


@dataclass(frozen=True)
class Workspace:
    """`project`: where dbt runs; `profiles`: of profiles.yml."""

    project: Path
    profiles: Path


def missing_checkouts(project: ForeignProject, checkouts: Path) -> list[str]:
    """Folders that are not there."""
    return [name for name in (project.checkout, *project.packages) if not (checkouts / name).is_dir()]


def make_workspace(project: ForeignProject, checkouts: Path, work: Path) -> Workspace:
    """In an empty folder `work`."""
    for name in {one.split("/")[0] for one in (project.checkout, *project.packages)}:
        shutil.copytree(
            checkouts / name, work / name, ignore=shutil.ignore_patterns(".git", "target", "logs")
        )
    for name in {project.checkout, *project.packages}:
        _name_packages(work / name, [])
    folder = work / project.checkout / project.folder
    own = [] if project.folder == "." else [work / project.checkout]
    _name_packages(folder, [*own, *(work / name for name in project.packages)])
    _merge_settings(folder / "dbt_project.yml", project.settings)
    profiles = work / "profiles"
    profiles.mkdir()
    (profiles / "profiles.yml").write_text(json.dumps(_profile(work / "warehouse")), "utf-8")
    return Workspace(folder, profiles)


def _name_packages(folder: Path, packages: list[Path]) -> None:
    for name in _RESOLVED_BY_DBT:
        (folder / name).unlink(missing_ok=True)
    if packages:
        named = {"packages": [{"local": str(path)} for path in packages]}
        (folder / "packages.yml").write_text(yaml.safe_dump(named), "utf-8")


def _merge_settings(path: Path, settings: Mapping[str, Any]) -> None:
    if settings:
        before = yaml.safe_load(path.read_text("utf-8"))
        variables = {"vars": {**before.get("vars", {}), **settings.get("vars", {})}}
        path.write_text(yaml.safe_dump({**before, **settings, **variables}), "utf-8")


def _profile(warehouse: Path) -> Mapping[str, Any]:
    target = {
        "type": "tablestore",
        "warehouse": str(warehouse),
        "schema": "foreign",
        "threads": 2,
        "spark": {"master": "local[2]", "conf": _SPARK},
    }
    return {PROFILE: {"target": "dev", "outputs": {"dev": target}}}
