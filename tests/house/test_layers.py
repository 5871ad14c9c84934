"""The import contract of `.importlinter` holds, as a test besides `make layers`."""

from __future__ import annotations

from tests.house.layers import run_import_linter


def test_layers_hold() -> None:
    """No module imports upwards, sideways or in a circle, and only the named packages meet Spark, Kafka and dbt."""
    done = run_import_linter()
    assert done.returncode == 0, done.stdout
