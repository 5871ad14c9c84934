"""The statements of a Python file, without their expressions: a tenth of the nodes of its tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator


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
