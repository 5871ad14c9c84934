"""Packages that only some methods need: they are loaded by the first call."""

from __future__ import annotations

import importlib
from typing import Any

from tablestore_engine.errors import FixRequest


def load_package(name: str, *, extra: str, needed_by: str) -> Any:  # noqa: ANN401 - a module that may be missing
    """The module. Raises FixRequest TS1567 that names the extra which installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise FixRequest(
            "TS1567",
            f"{needed_by} needs the package {name}",
            why=str(error),
            fix=f"pip install 'dbt-tablestore[{extra}]'",
        ) from error
