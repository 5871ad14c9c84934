"""Keys of a config that would put a secret where everybody reads it: refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.tablestore.config.value_shapes import read_mapping
from dbt.adapters.tablestore.model_graph import nested
from tablestore_engine.api import FixRequest
from tablestore_engine.spi import is_credential

ALIASES = {"tblproperties": "table_properties", "predicates": "incremental_predicates"}


def refuse_secrets(name: str, values: Mapping[str, Any]) -> None:
    """Config reaches manifest.json and schema files; secrets belong to the profile only."""
    for group in ("kafka", "table_properties"):
        for key in read_mapping(name, group, values.get(group)):
            if is_credential(str(key)):
                raise _secret(f"model {name}", str(key))


def refuse_secret_keys(config: Mapping[str, Any]) -> None:
    """Any part of a config as dbt parses it, before the manifest is written. Raises FixRequest TS1818.

    Looked at are the keys themselves, and those inside the maps that hold options, also under meta.tablestore.
    """
    for part in (config, nested(config)):
        groups = [part.get(group) for group in ("kafka", "table_properties", *ALIASES)]
        for keys in (part, *(group for group in groups if isinstance(group, Mapping))):
            for key in keys:
                if is_credential(str(key).lstrip("+")):
                    raise _secret("a config in this project", str(key))


def _secret(where: str, key: str) -> FixRequest:
    return FixRequest(
        "TS1818",
        f"{where} has {key!r}",
        why="a config is stored readable in target/manifest.json and in the table",
        fix="put it under `log:` of the profile, with env_var() for the secret",
    )
