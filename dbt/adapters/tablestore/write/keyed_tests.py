"""The test equals_full_refresh of a Python model: its code runs over all rows of its inputs.

CHANGE     the test of a Python model by `changed_keys`
INVARIANT  the code that has made the rows runs, over the very states of its inputs: dbt's compiled text is known by its
           digest, and the test's pins say which states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.python_models.keyed_inputs import inputs_of, keyed_inputs
from dbt.adapters.tablestore.python_models.model_code import ModelCode
from dbt.adapters.tablestore.python_models.python_config import read_python_config
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.python_models import PythonModels


@dataclass(frozen=True)
class KeyedTests:
    """Of one invocation. `settings_of`: of a model, as dbt's node."""

    python: PythonModels
    settings_of: Callable[[Mapping[str, Any]], ModelSettings]

    def keys(self, model: Any, text: str) -> str:  # noqa: ANN401 - dbt's node
        """SQL that reads what the code of `text` reads."""
        affected = self.settings_of(model.to_dict()).table.affected
        assert affected is not None  # its digest is that of a changed_keys model
        return keyed_inputs(inputs_of(text), affected).query

    def rows(self, model: Any, text: str, relation: TablestoreRelation, test: str) -> str:  # noqa: ANN401 - dbt's node
        """SQL of all rows that the code gives, at the states that the test reads."""
        node = model.to_dict()
        code = ModelCode(
            name=str(node["name"]),
            path=str(node["original_file_path"]),
            raw=str(node["raw_code"]),
            compiled=text,
            database=relation.database,
            config=node["config"],
        )
        return self.python.run(test, relation, code, read_python_config(node), is_test=True)
