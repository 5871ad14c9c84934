"""The examples in the docstrings of the Python API: where they are, and each as a program.

An example is a doctest. It runs after `SETUP`, and names of `IMPORTS` and of `tablestore_engine.api` are known in it.
Lines with `# doctest: +SPARK` start a JVM: integration_tests/spark runs their examples.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tablestore_engine import api

SPARK = doctest.register_optionflag("SPARK")
SETUP = """# example.py
import tempfile

import pyarrow as pa

from tablestore_engine.api import Engine

engine = Engine(tempfile.mkdtemp())
schema = pa.schema({"id": pa.int64(), "region": pa.string(), "amount": pa.float64()})
orders = engine.create_table("demo.orders", schema, primary_key="id")
orders.upsert(
    [
        {"id": 1, "region": "eu", "amount": 10.0},
        {"id": 2, "region": "us", "amount": 20.0},
        {"id": 3, "region": "eu", "amount": 30.0},
    ]
)
"""
IMPORTS = {
    "UTC": "from datetime import UTC",
    "date": "from datetime import date",
    "datetime": "from datetime import datetime",
    "Path": "from pathlib import Path",
    "pl": "import polars as pl",
    "pa": "import pyarrow as pa",
    "pc": "import pyarrow.compute as pc",
}
_ARGUMENT = re.compile(r"([a-z_]+(?:, [a-z_]+)*)\s{2,}(\S.*)")  # `limit    so many rows at most`
_HANDLES = ("Engine", "Table", "Scan", "TableStream")  # their methods have examples too


@dataclass(frozen=True)
class ApiName:
    """A name of the API, or a public method of a handle, as `Table.scan`."""

    name: str
    target: object

    @property
    def text(self) -> str:
        """Its docstring without indentation."""
        own = self.target.fget if isinstance(self.target, property) else self.target
        return inspect.getdoc(own) or ""

    @property
    def prose(self) -> str:
        """The docstring up to its example."""
        return self.text.partition(">>> ")[0].strip()

    @property
    def steps(self) -> list[doctest.Example]:
        """The lines of the example, with what each prints."""
        return doctest.DocTestParser().get_examples(self.text)

    @property
    def needs_spark(self) -> bool:
        """Whether a line starts a JVM."""
        return any(SPARK in step.options for step in self.steps)


def api_names() -> tuple[ApiName, ...]:
    """Every name of `tablestore_engine.api`, sorted; each handle with its public methods that have an example."""
    return tuple(one for name in sorted(api.__all__, key=str.lower) for one in _with_methods(name))


def _with_methods(name: str) -> Iterator[ApiName]:
    target = getattr(api, name)
    yield ApiName(name, target)
    if name not in _HANDLES:
        return
    for owner in reversed(target.__mro__[:-1]):
        for method, found in vars(owner).items():
            one = ApiName(f"{name}.{method}", found)
            is_public = not method.startswith("_") or method == "__arrow_c_stream__"
            if is_public and (inspect.isfunction(found) or isinstance(found, property)) and one.steps:
                yield one


def header(code: str) -> str:
    """The imports that an example needs after SETUP."""
    found = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    made = {node.id for node in found if isinstance(node.ctx, ast.Store)}
    used = {node.id for node in found} - made
    lines = [line for name, line in IMPORTS.items() if name in used]
    ours = sorted(used & set(api.__all__))
    lines += [f"from tablestore_engine.api import {', '.join(ours)}"] if ours else []
    shared = sorted(used & {"engine", "orders", "schema"})
    lines += [f"from example import {', '.join(shared)}"] if shared else []
    return "\n".join(lines)


def code_of(one: ApiName) -> str:
    """The statements of an example without what they print."""
    return "".join(step.source.replace("  # doctest: +SPARK", "") for step in one.steps)


def program(one: ApiName) -> str:
    """The example as a program; what a line prints follows it as a comment."""
    lines = [header(code_of(one)), ""]
    for step in one.steps:
        lines.append(step.source.replace("  # doctest: +SPARK", "").rstrip("\n"))
        lines += [f"# {line}".rstrip() for line in step.want.splitlines()]
    return "\n".join(lines).strip() + "\n"


def run_example(one: ApiName) -> str:
    """What the example printed otherwise than it says, in the current folder; empty when all is right."""
    names: dict[str, object] = {name: getattr(api, name) for name in api.__all__}
    exec("\n".join([*IMPORTS.values(), SETUP]), names)  # noqa: S102 - our own text
    test = doctest.DocTest(one.steps, names, one.name, None, 0, one.text)
    found = io.StringIO()
    doctest.DocTestRunner(verbose=False).run(test, out=found.write)
    return found.getvalue()


# ---- docs/python-api.md ------------------------------------------------------------------------------------


def render_python_api(introduction: str) -> str:
    """The page: what a person wrote, and then each name with its text and its example."""
    lines = [introduction.rstrip(), ""]
    for one in api_names():
        level = "###" if "." in one.name else "##"
        lines += [f"{level} {one.name}", "", *_signature(one), *_paragraphs(one.prose), ""]
        if one.steps:
            lines += ["```python", program(one).rstrip(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _signature(one: ApiName) -> list[str]:
    """`scan(*, columns=None)`; none of a class, whose text says how it is made."""
    if not inspect.isfunction(one.target):
        return []
    parameters = list(inspect.signature(one.target).parameters.values())
    shown = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    is_method = bool(shown) and shown[0].name == "self"
    given = inspect.Signature(shown[1:] if is_method else shown)
    return [f"`{one.name.rpartition('.')[2]}{given}`", ""]


def _paragraphs(text: str) -> list[str]:
    """Markdown of a docstring: blocks of `name  meaning` become lists."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        rows = [_ARGUMENT.match(line) for line in paragraph.splitlines()]
        if rows[0] is None:
            lines += [paragraph, ""]
            continue
        for found, line in zip(rows, paragraph.splitlines(), strict=True):
            lines.append(f"  {line.strip()}" if found is None else f"- `{found[1]}`: {found[2]}")
        lines.append("")
    return lines[:-1]
