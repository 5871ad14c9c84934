"""The code of a Python model as a module of its own: what it gets, and the lines that its errors name."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.tablestore.dbt_errors import ModelCodeFailed, ModelCodeFailure, to_dbt_error
from dbt.adapters.tablestore.python_models.model_code import (
    ModelCode,
    count_skipped_lines,
    describe_kind,
    run_code,
)
from tablestore_engine.errors import NotFound, RetryError, StagedVersionMissing, TablestoreError

# as dbt renders it, in short
POSTFIX = """
def ref(*args, **kwargs):
    return kwargs["load"]({"src": "demo.src"}[args[0]])


config_dict = {"used": 1}
meta_dict = {}


class config:
    @staticmethod
    def get(key, default=None):
        return config_dict.get(key, default)

    @staticmethod
    def meta_get(key, default=None):
        return meta_dict.get(key, default)


class this:
    database = "None"


class dbtObj:
    def __init__(self, load):
        self.ref = lambda *args: ref(*args, load=load)
        self.config = config
        self.this = this()
"""
SESSION: Any = object()


def code(raw: str, **more: Any) -> ModelCode:
    """As dbt compiles it."""
    return ModelCode("m", "models/m.py", raw, f"{raw}\n\n{POSTFIX}", **more)


def run(raw: str, **more: Any) -> object:
    """What the model returns."""
    return run_code(code(raw, **more), SESSION, lambda name: f"rows of {name}")


def failure(raw: str, **more: Any) -> ModelCodeFailed:
    """The error that it ends in."""
    with pytest.raises(ModelCodeFailed) as caught:
        run(raw, **more)
    return caught.value


def test_function_gets_inputs_session_and_config() -> None:
    """dbt.config.get() knows the whole config; the database is none, not a text."""
    raw = (
        "def model(dbt, session):\n    return (dbt.ref('src'), session is spark, dbt.config.get('used'),"
        " dbt.config.get('unseen'), dbt.config.get('none', 5), dbt.config.meta_get('owner'), dbt.this.database)"
    )
    found = run(raw, config={"unseen": 7, "none": None, "used": 9, "meta": {"owner": "me"}})
    assert found == ("rows of demo.src", True, 1, 7, 5, "me", None)


def test_two_models_share_no_global_name() -> None:
    """Nor does a module stay importable behind its run."""
    before = set(sys.modules)
    run("SEEN = 1\n\n\ndef model(dbt, session):\n    return SEEN")
    raw = "def model(dbt, session):\n    return 'SEEN' in globals()"
    assert run(raw) is False
    assert {name for name in set(sys.modules) - before if name.startswith("dbt_python_model")} == set()


def test_error_names_file_line_and_source() -> None:
    """The last line of the model, also where a library raises; skipped lines count."""
    raw = "import json\n\n\ndef read(text):\n    return json.loads(text)\n\n\ndef model(dbt, session):\n    read('')"
    error = failure(raw, skipped=2)
    assert error.what.startswith("Python model m failed: JSONDecodeError: Expecting value")
    assert error.why == "models/m.py, line 7, in read: return json.loads(text)"
    assert isinstance(to_dbt_error(error), ModelCodeFailure)


def test_error_at_the_top_of_the_file_names_its_line() -> None:
    """The module itself can fail."""
    error = failure("import no_such_module_at_all\n\n\ndef model(dbt, session):\n    return 1")
    assert error.why == "models/m.py, line 1, in <module>: import no_such_module_at_all"


def test_input_that_dbt_has_not_seen_is_explained() -> None:
    """The KeyError is in dbt's part; the line is the user's."""
    error = failure("def model(dbt, session):\n    name = 'other'\n    return dbt.ref(name)")
    assert error.why == "models/m.py, line 3, in model: return dbt.ref(name)"
    assert "assign them to variables" in error.fix
    assert "assign them" not in failure("def model(dbt, session):\n    return {}['x']").fix


@pytest.mark.parametrize("raised", ["SystemExit(3)", "KeyboardInterrupt"])
def test_exit_in_a_thread_is_an_error_of_the_model(raised: str) -> None:
    """A thread of a pool that ends otherwise is never missed."""
    found: list[ModelCodeFailed] = []
    thread = threading.Thread(
        target=lambda: found.append(failure(f"def model(dbt, session):\n    raise {raised}"))
    )
    thread.start()
    thread.join()
    assert raised.partition("(")[0] in found[0].what


def test_interruption_of_the_main_thread_ends_the_program() -> None:
    """Ctrl-C with --single-threaded."""
    with pytest.raises(KeyboardInterrupt):
        run("def model(dbt, session):\n    raise KeyboardInterrupt")


def raised_by_the_engine(error: TablestoreError) -> TablestoreError:
    """What leaves a model whose input raises `error`."""

    def load(_: str) -> object:
        raise error

    with pytest.raises(TablestoreError) as caught:
        run_code(code("def model(dbt, session):\n    return dbt.ref('src')"), SESSION, load)
    return caught.value


def test_error_that_may_pass_keeps_its_class() -> None:
    """Whoever tries again looks at it."""
    for error in (
        RetryError("TS9999", "w", why="y", fix="f"),
        StagedVersionMissing("TS9999", "w", why="y", fix="f"),
    ):
        assert raised_by_the_engine(error) is error


def test_refusal_of_the_engine_gets_the_line() -> None:
    """With its own code, reason and way out."""
    found = raised_by_the_engine(NotFound("TS9999", "no table", why="none", fix="look"))
    assert found.what == "Python model m failed: TS9999 no table"
    assert found.why == "models/m.py, line 2, in model: return dbt.ref('src'); none"
    assert found.fix == "look"


def test_lines_that_dbt_strips_are_counted(tmp_path: Path) -> None:
    """In the folder that has the file; another text of that name does not count."""
    (tmp_path / "m.py").write_text("\n\n  \nx = 1\n")
    assert count_skipped_lines([tmp_path / "none", tmp_path], "m.py", "x = 1") == 3
    assert count_skipped_lines([tmp_path], "m.py", "y = 1") == 0
    assert count_skipped_lines([], "m.py", "x = 1") == 0


def test_kind_of_a_result_is_named_with_its_library() -> None:
    """Without the modules in between, which nobody knows."""
    assert describe_kind(1) == "int"
    assert describe_kind(Path()) == "pathlib.PosixPath"
