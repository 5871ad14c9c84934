"""Names of a package that load their module when they are first asked for (PEP 562).

WHY        `from tablestore_engine.api import Engine` must not load what other names need: Spark's side, Kafka's client,
           query plans. Decision 0137 has the times, and how modules below `api` import in functions.
INVARIANT  the imports of the package stand under `if TYPE_CHECKING:`, where type checkers and the layers' check read
           them. They are the one list of where each name comes from, and of `__all__` where the package has none.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec


def load_on_use(package: str) -> Callable[[str], object]:
    """`__getattr__` of that package. Raises AttributeError for what it does not import."""
    origins: dict[str, tuple[str, str]] = {}

    def find_name(name: str) -> object:
        if not origins:
            origins.update(_read_imports(package))
        if name == "__all__":
            return list(origins)
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        module, original = origins[name]
        found: object = getattr(importlib.import_module(module), original)
        setattr(sys.modules[package], name, found)  # from now on without this function
        return found

    return find_name


def _read_imports(package: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Name, and the module and name that it stands for."""
    spec = find_spec(package)
    source = None if spec is None or spec.loader is None else spec.loader.get_source(package)  # type: ignore[attr-defined]
    for block in ast.parse(source or "").body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    yield from ((one.asname or one.name, (line.module, one.name)) for one in line.names)
