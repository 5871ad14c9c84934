"""Former names of the Python API: they work until the release after 1.11, with a DeprecationWarning.

CHANGELOG.md lists them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def warn_former(former: str, now: str) -> None:
    """Warn two calls up: the code that uses the former name."""
    warnings.warn(f"{former} is deprecated: use {now}", DeprecationWarning, stacklevel=3)


def former_method(former: str, now: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """A method under its former name."""

    @wraps(now)
    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        warn_former(former, now.__name__)
        return now(*arguments, **named)

    return call
