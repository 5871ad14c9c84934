"""The adapter's methods for Python models: dbt's macros call them before plan and write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.spark.impl import SparkAdapter

from dbt.adapters.tablestore.dbt_errors import as_dbt_errors
from dbt.adapters.tablestore.python_models.model_code import ModelCode, count_skipped_lines
from dbt.adapters.tablestore.python_models.python_config import read_python_config
from dbt.adapters.tablestore.python_models.required_packages import check_packages
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.model_writer import ModelWriter


class PythonSubmission(SparkAdapter):
    """A part of the adapter, which knows no other part."""

    writer: ModelWriter

    @available.parse_none
    @as_dbt_errors()
    def tablestore_check_python(self, model: Mapping[str, Any]) -> None:
        """Before hooks and code: config and packages of a Python model."""
        check_packages(str(model["name"]), read_python_config(model).packages)

    @available.parse_none
    @as_dbt_errors()
    def tablestore_run_python(self, relation: TablestoreRelation, model: Mapping[str, Any], code: str) -> str:
        """Run the compiled code; SQL of its rows."""
        path, raw = str(model["original_file_path"]), str(model["raw_code"])
        found = ModelCode(
            name=str(model["name"]),
            path=path,
            raw=raw,
            compiled=code,
            skipped=count_skipped_lines(self._folders(str(model["package_name"])), path, raw),
            database=relation.database,
            config=model["config"],
        )
        config, node = read_python_config(model), str(model["unique_id"])
        try:
            return self.writer.python.run(node, relation, found, config)
        finally:
            self.writer.looks.forget()

    def _folders(self, package: str) -> list[Path]:
        """Where files of a package may lie."""
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
