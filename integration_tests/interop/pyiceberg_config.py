"""pyiceberg in this process, from an environment of its own behind the packages here, with one catalog named `shop`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from integration_tests.interop.environments import ICEBERG_CATALOG
from integration_tests.interop.missing import made_or_skip


def configure_catalog(folder: Path, patch: pytest.MonkeyPatch, **settings: str) -> None:
    """`settings` of the catalog; `folder` takes the configuration. Skips where the environment cannot be made."""
    place = made_or_skip(ICEBERG_CATALOG.python).parent.parent
    [packages] = place.glob("lib/python*/site-packages")
    patch.setattr(sys, "path", [*sys.path, str(packages)])
    patch.setenv("PYICEBERG_HOME", str(folder))
    lines = [f"    {name.replace('_', '-')}: {value}\n" for name, value in settings.items()]
    (folder / ".pyiceberg.yaml").write_text("catalog:\n  shop:\n" + "".join(lines))
    from pyiceberg import catalog as module
    from pyiceberg.utils.config import Config

    patch.setattr(module, "_ENV_CONFIG", Config())  # a process reads it once
