"""What a log is opened with is one argument: its settings, admin client and outside world stay together in KafkaLog."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.statements import parsed

LOG = Path(__file__).resolve().parents[2] / "tablestore_engine" / "log"
FILES = sorted(LOG.rglob("*.py"))
# KafkaLog has the other three, and a publisher's Session has a KafkaLog
HELD = frozenset({"LogSettings", "AdminClient", "Runtime", "KafkaLog", "Session"})
HOLDER = "KafkaLog"


def _named(annotation: ast.expr | None) -> frozenset[str]:
    """Which of HELD a type names, alone, in `… | None` or as an item; what a function takes or gives does not count."""
    if annotation is None:
        return frozenset()
    skipped = {
        id(inner)
        for node in ast.walk(annotation)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Callable"
        for inner in ast.walk(node)
    }
    names = (
        node.id for node in ast.walk(annotation) if isinstance(node, ast.Name) and id(node) not in skipped
    )
    return HELD.intersection(names)


def _together(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Each function, and each class by its fields, that is given more than one of HELD."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            types = [one.annotation for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        elif isinstance(node, ast.ClassDef) and node.name != HOLDER:
            types = [one.annotation for one in node.body if isinstance(one, ast.AnnAssign)]
        else:
            continue
        found = frozenset[str]().union(*map(_named, types))
        if len(found) > 1:
            yield node.name, sorted(found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(LOG)))
def test_no_function_is_given_the_parts_of_a_log(path: Path) -> None:
    """Settings, admin client and runtime come as one KafkaLog, never two of them, and none beside a KafkaLog."""
    assert list(_together(parsed(path.read_text()))) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(settings: LogSettings, *, runtime: Runtime = SYSTEM): ...", ["LogSettings", "Runtime"]),
        ("def f(admin: AdminClient | None, settings: LogSettings): ...", ["AdminClient", "LogSettings"]),
        ("def f(shards: Sequence[LogSettings], admin: AdminClient): ...", ["AdminClient", "LogSettings"]),
        ("async def f(log: KafkaLog, /, runtime: Runtime): ...", ["KafkaLog", "Runtime"]),
        ("def f(session: Session, settings: LogSettings): ...", ["LogSettings", "Session"]),
        ("class f:\n    admin: AdminClient\n    runtime: Runtime", ["AdminClient", "Runtime"]),
        ("def f(log: KafkaLog, look: Callable[[LogSettings], Runtime]): ...", None),
        ("class KafkaLog:\n    settings: LogSettings\n    runtime: Runtime", None),
    ],
)
def test_what_counts_as_together(source: str, found: list[str] | None) -> None:
    """The rule sees parameters of every kind and fields of classes, and KafkaLog alone may have all three."""
    assert list(_together(parsed(source))) == ([] if found is None else [("f", found)])
