"""Commands of the command line handle no pandas frames, but pyarrow imports pandas with the first value it makes.

WHY        pandas takes 0.3 s and 40 MB of each command. pyarrow asks once whether pandas can be imported. Later
           imports of pandas work as usual, and so does `to_pandas`.
INVARIANT  REQUIRES a process of one command that runs no code of users: pyarrow takes no value for one of pandas then.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_PANDAS = "pandas"


def leave_out_pandas() -> None:
    """From the next import of pyarrow on. In a process that has pyarrow or pandas nothing is changed."""
    if "pyarrow" not in sys.modules and _PANDAS not in sys.modules:
        sys.meta_path.insert(0, _PyarrowFinder())


class _PyarrowFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """pyarrow with a loader that lets it ask for pandas at once, and for nothing else."""
        if fullname != "pyarrow":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _PyarrowLoader(spec.loader)
        return spec


class _PyarrowLoader(Loader):
    def __init__(self, inner: Loader) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Load pyarrow and make its first value, for which it asks for pandas."""
        self._inner.exec_module(module)
        finder = _NoPandas()
        sys.meta_path.insert(0, finder)
        try:
            module.scalar(0)
        finally:
            sys.meta_path.remove(finder)


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """No other finder is asked for pandas."""
        if fullname == _PANDAS:
            raise ModuleNotFoundError("pandas is left out of this command", name=fullname)
        return None
