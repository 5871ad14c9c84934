"""Loaded by each process of pytest before any test module: its file systems are on the S3 server."""

from __future__ import annotations

import pytest

from integration_tests.s3.store_mode import switch_on

switch_on()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that look at folders are left out."""
    left_out = [item for item in items if item.get_closest_marker("folders") is not None]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
