"""The adapter's methods for Python models: dbt's macros call them before plan and write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.spark.impl import SparkAdapter
from packaging.requirements import InvalidRequirement, Requirement

from dbt.adapters.tablestore.dbt_errors import for_macros
from dbt.adapters.tablestore.plan import run_context
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.python_models.model_code import ModelCode, count_skipped_lines
from dbt.adapters.tablestore.python_models.python_config import read_python_config
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.model_writer import ModelWriter
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


class PythonSubmission(SparkAdapter):
    """A part of the adapter, which knows no other part."""

    writer: ModelWriter

    @for_macros()
    def tablestore_check_python(self, model: Mapping[str, Any]) -> None:
        """Before hooks and code: config and packages of a Python model."""
        check_packages(str(model["name"]), read_python_config(model).packages)

    @for_macros()
    def tablestore_run_python(
        self,
        relation: TablestoreRelation,
        settings: ModelSettings,
        model: Mapping[str, Any],
        code: str,
        **given: object,
    ) -> str:
        """Run the compiled code; SQL of its rows."""
        context, folders = run_context.read_code(given), self._folders(str(model["package_name"]))
        path, raw = str(model["original_file_path"]), str(model["raw_code"])
        found = ModelCode.of(model, code, relation.database, count_skipped_lines(folders, path, raw))
        config, node = read_python_config(model), str(model["unique_id"])
        try:
            keyed = self.writer.python.keyed(relation, settings, found, config, context)
            return self.writer.python.run(node, relation, found, config, keyed)
        finally:
            self.writer.looks.forget()

    def _folders(self, package: str) -> list[Path]:
        root = Path(str(getattr(self.config, "project_root", None) or "."))
        installed = str(getattr(self.config, "packages_install_path", None) or "dbt_packages")
        own = str(getattr(self.config, "project_name", package))
        return [root] if package == own else [root / installed / package]

    def cleanup_connections(self) -> None:
        """Called by dbt at the end of an invocation: names of rows go."""
        self.writer.python.finish_all()
        super().cleanup_connections()

    def generate_python_submission_response(self, submission_result: Any) -> AdapterResponse:  # noqa: ANN401, ARG002
        """dbt asks for it in submit_python_job(), which no macro of this adapter calls."""
        return AdapterResponse(_message="OK")
