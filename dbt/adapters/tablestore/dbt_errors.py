"""Errors of the engine in the words of dbt: same text, no stack, the kind that dbt reports well.

WHY        dbt prints "Unhandled error" and a stack for exceptions that are not its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, TypeVar, cast

from dbt.adapters.base.meta import available
from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.tablestore.messages import shown
from tablestore_engine.api import FixRequest, PublishPending, TablestoreError
from tablestore_engine.spi import Area

Call = TypeVar("Call", bound=Callable[..., Any])


class ModelCodeFailed(FixRequest):
    """TS1896: the code of a Python model raised an error."""


class _Plain:
    """Without the macros on the way: what went wrong stands in the message, and none of them is the user's."""

    def process_stack(self) -> list[str]:
        """No lines under the message."""
        return []


class RefusedConfig(_Plain, CompilationError):
    """The model's config or SQL asks for something that is refused."""


class EngineFailure(_Plain, DbtDatabaseError):
    """The engine could not do it."""


class ModelCodeFailure(_Plain, DbtRuntimeError):
    """The model's own code failed."""


def to_dbt_error(error: TablestoreError) -> DbtRuntimeError:
    """What we refuse in a model's config is dbt's compilation error, the engine's failure its database error."""
    kind: type[DbtRuntimeError] = RefusedConfig if error.area in (Area.ADAPTER, Area.MODEL) else EngineFailure
    kind = ModelCodeFailure if isinstance(error, ModelCodeFailed) else kind
    pending = "\n  dbt: `dbt retry` sends it and writes nothing; `dbt run` is a new write"
    return kind(shown(str(error)) + (pending if isinstance(error, PublishPending) else ""))


class as_dbt_errors(ContextDecorator):  # noqa: N801 - reads like a keyword where it is used
    """Turn engine errors that leave the block, or the function, into dbt's."""

    def __enter__(self) -> as_dbt_errors:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, TablestoreError):
            raise to_dbt_error(error) from error


def for_macros(while_parsing: Callable[..., Any] = lambda *_, **__: None) -> Callable[[Call], Call]:
    """A method that macros call. `while_parsing` answers in its place while dbt parses: nothing is looked up then."""

    def decorate(method: Call) -> Call:
        return cast("Call", available.parse(while_parsing)(as_dbt_errors()(method)))

    return decorate
