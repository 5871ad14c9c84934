"""Trees of Python files, and their statements without the expressions: a tenth of the nodes of a tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache


@cache
def parsed(source: str) -> ast.Module:
    """The tree of a text, once in a process: a dozen house tests look at all files. It is read only."""
    return ast.parse(source)


def walk_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The node itself, and all statements below it, also those of handlers and cases."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                waiting.extend(inner)
