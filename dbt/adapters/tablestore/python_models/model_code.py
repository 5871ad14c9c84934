"""Runs the code of a Python model: dbt's compiled text as a module of its own, its errors with the user's line.

CHANGE     how the code of a Python model is run
Steps      compile, with the line numbers of the user's file → run the module → model(dbt, session) → its rows
INVARIANT  a module belongs to one run: two models, or two threads, share no global name.
INVARIANT  an error of the code is one TS1896 with file and line, also a refusal of the engine; errors that may pass by
           themselves keep their class, for those that try again.
"""

from __future__ import annotations

import itertools
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from dbt.adapters.tablestore.dbt_errors import ModelCodeFailed
from tablestore_engine.api import (
    FixData,
    FixRequest,
    RetryError,
    TablestoreError,
    Unsupported,
    explain_failure,
)
from tablestore_engine.spi import StagedVersionMissing, imported

_NUMBERS = itertools.count(1)
_TEXT_MAX = 400
_FIX = "correct the model; dbt's debug log has the whole traceback"
_UNSEEN = (
    "call dbt.ref() and dbt.source() with literals and assign them to variables: dbt has not seen this call"
)
_SPARK = ("pyspark.", "py4j.")


@dataclass(frozen=True)
class ModelCode:
    """`raw`: the user's text as dbt has it, without blank lines at its begin; `compiled`: with dbt's part under it.

    `path`: as dbt shows it; `skipped`: lines of the file before `raw`. `database`: of the model's table; `config`: all
    of the model's, since dbt knows only those calls of dbt.config.get() that its parser saw.
    """

    name: str
    path: str
    raw: str
    compiled: str
    skipped: int = 0
    database: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, node: Mapping[str, Any], compiled: str, database: str | None, skipped: int = 0) -> ModelCode:
        """`node`: dbt's, of the model."""
        name, path, raw = (str(node[key]) for key in ("name", "original_file_path", "raw_code"))
        return cls(name, path, raw, compiled, skipped, database, node["config"])


def count_skipped_lines(folders: list[Path], path: str, raw: str) -> int:
    """Lines of the model's file before the text that dbt has of it: dbt strips them."""
    for folder in folders:
        try:
            text = (folder / path).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if text.strip() == raw.strip():
            return text[: len(text) - len(text.lstrip())].count("\n")
    return 0


def run_code(code: ModelCode, session: object, load: Callable[[str], object]) -> object:
    """What model() returns; `load` gives the rows of a table or view by its name in SQL. Raises TS1896."""
    module = ModuleType(f"dbt_python_model_{code.name}_{next(_NUMBERS)}")
    module.__file__ = code.path
    try:
        with imported(module):
            return _call(code, module, session, load)
    except TablestoreError as error:
        if not isinstance(error, FixRequest | FixData | Unsupported) or isinstance(
            error, StagedVersionMissing
        ):
            raise
        raise _failed(code, error) from error
    except KeyboardInterrupt as error:
        if threading.current_thread() is threading.main_thread():
            raise
        raise _failed(
            code, error
        ) from error  # a thread of dbt's pool that ends otherwise is waited for in vain
    except (Exception, SystemExit) as error:
        if isinstance(error, Exception) and isinstance(explain_failure(error), RetryError):
            raise explain_failure(
                error
            ) from error  # of Spark: a job that was cancelled, a file that has expired
        raise _failed(code, error) from error


def _call(code: ModelCode, module: ModuleType, session: object, load: Callable[[str], object]) -> object:
    text = "\n" * code.skipped + code.compiled
    module.__dict__["spark"] = session  # what notebooks call it
    exec(compile(text, code.path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - what a model is for
    names = module.__dict__
    for known, given in (("config_dict", code.config), ("meta_dict", code.config.get("meta") or {})):
        names[known] = {**{key: value for key, value in given.items() if value is not None}, **names[known]}
    dbt = names["dbtObj"](load)
    dbt.this.database = code.database  # dbt writes "None" for none
    return names["model"](dbt, session)


def describe_kind(rows: object) -> str:
    """Module and name of a type: polars.LazyFrame."""
    kind = type(rows)
    top = kind.__module__.partition(".")[0]
    return kind.__qualname__ if top == "builtins" else f"{top}.{kind.__qualname__}"


def _failed(code: ModelCode, error: BaseException) -> ModelCodeFailed:
    refused = error if isinstance(error, TablestoreError) else None
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == code.path]
    is_in_dbt = bool(frames) and frames[-1].name in ("ref", "source")
    return ModelCodeFailed(
        "TS1896",
        f"Python model {code.name} failed: {_text(error)}",
        why=_location(code, frames) + (f"; {refused.why}" if refused else ""),
        fix=refused.fix if refused else _UNSEEN if is_in_dbt and isinstance(error, KeyError) else _FIX,
    )


def _text(error: BaseException) -> str:
    """Class and first line; of Spark's errors what the engine says of them, without plans and stacks of Java."""
    kind = type(error)
    if isinstance(error, TablestoreError):
        return f"{error.code} {error.what}"
    if isinstance(error, Exception) and kind.__module__.startswith(_SPARK):
        text = explain_failure(error).why
    else:
        text = next(iter(str(error).strip().splitlines()), "")
    return f"{kind.__name__}: {text[:_TEXT_MAX]}" if text else kind.__name__


def _location(code: ModelCode, frames: list[traceback.FrameSummary]) -> str:
    """`models/NAME.py, line 7, in model: return 1 / 0`; the last line that is the user's."""
    lines = [*[""] * code.skipped, *code.raw.splitlines()]
    own = [one for one in frames if 0 < (one.lineno or 0) <= len(lines)]
    if not own:
        return f"{code.path}, outside the lines of the model"
    number = own[-1].lineno or 0
    return f"{code.path}, line {number}, in {own[-1].name}: {lines[number - 1].strip()}"
