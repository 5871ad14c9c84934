"""Environments that cannot be made here: the test is skipped, and fails under CI."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from integration_tests.interop.environments import CannotMake

T = TypeVar("T")


def made_or_skip(make: Callable[[], T]) -> T:
    """What it makes. Raises CannotMake under CI."""
    try:
        return make()
    except CannotMake as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"this environment cannot be made: {missing}")
