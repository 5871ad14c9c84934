"""Everything that a build may use, loaded at once: for a process that is forked for each command (decision 0137)."""

from __future__ import annotations

import importlib
import pkgutil

# What these import is loaded with them.
_PACKAGES = ("api", "warehouse", "spark", "catalog", "stream", "store", "log")


def load_for_builds() -> None:
    """Import every module of the API and of the packages below it; it reads no warehouse and starts nothing."""
    for package in _PACKAGES:
        found = importlib.import_module(f"tablestore_engine.{package}")
        for module in pkgutil.walk_packages(found.__path__, f"{found.__name__}."):
            importlib.import_module(module.name)
