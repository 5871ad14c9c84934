"""Whether the Python that runs dbt has the packages that a model asks for. Nothing is installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec

from packaging.requirements import InvalidRequirement, Requirement

from tablestore_engine.api import FixRequest


def check_packages(name: str, packages: Sequence[str]) -> None:
    """Of model `name`; `packages` as pip writes requirements. Raises FixRequest TS1892, TS1894."""
    wanted = [_requirement(name, text) for text in packages]
    found = [(one, _problem(one)) for one in wanted if one.marker is None or one.marker.evaluate()]
    problems = [(one, problem) for one, problem in found if problem is not None]
    if problems:
        raise FixRequest(
            "TS1892",
            f"Python model {name}: required packages are not installed",
            why="; ".join(problem for _, problem in problems),
            fix=f"run `pip install {' '.join(_quoted(one) for one, _ in problems)}` in the environment that runs dbt",
        )


def _requirement(name: str, text: str) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise FixRequest(
            "TS1894",
            f"Python model {name}: packages has {text!r}, which is no requirement",
            why=str(error).splitlines()[0],
            fix="write the name of a package, with or without a version, like 'scikit-learn>=1.5'",
        ) from error


def _problem(wanted: Requirement) -> str | None:
    try:
        version = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        if not wanted.specifier and _is_importable(wanted.name):  # named by its module: sklearn
            return None
        return f"{wanted.name} is missing"
    if wanted.specifier.contains(version, prereleases=True):
        return None
    return f"{wanted.name} has version {version}, expected {wanted.specifier}"


def _is_importable(name: str) -> bool:
    try:
        return find_spec(name.replace("-", "_")) is not None
    except (ImportError, ValueError):
        return False


def _quoted(wanted: Requirement) -> str:
    text = f"{wanted.name}{wanted.specifier}"
    return f"'{text}'" if wanted.specifier else text
