"""`make test-changed`: the tests that the working tree's changes concern, for a developer's own run; CI runs all.

Steps      files that differ from the merge base with BASE (main), and new ones → test files by their imports, and the
           suites of REAL_PARTS for what no import shows: brokers, Spark, dbt → pytest on them
INVARIANT  a test that reaches a module only through the engine's doors (api, spi) is not chosen for it: its suite is.
INVARIANT  a folder that REAL_PARTS does not know is an error (tests/house/test_changed.py walks them).
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

import grimp

from tests.statements import parsed, walk_statements

ROOT = Path(__file__).resolve().parents[1]
ENGINE, DOORS = "tablestore_engine", ("tablestore_engine.api", "tablestore_engine.spi")
# What a change below a path is tried on besides the tests that import it: suites of integration_tests.
REAL_PARTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("dbt/adapters", "dbt/include"), ("adapter",)),
    **{f"{ENGINE}/{name}": ("spark",) for name in ("spark", "sql", "queryplan", "datasource", "catalog")},
    **{f"{ENGINE}/{name}": ("interop",) for name in ("certify", "format", "iceberg", "lsm", "store")},
    **{f"{ENGINE}/{name}": ("ingest",) for name in ("ingest", "postgres")},
    **{f"{ENGINE}/{name}": ("kafka",) for name in ("log", "stream", "devservers")},
    **{
        f"{ENGINE}/{name}": ()
        for name in ("api", "spi", "cli", "display.py", "lazy_names.py", "error_values.py", "errors.py")
    },
    f"{ENGINE}/fileio": ("s3",),
    f"{ENGINE}/options": ("adapter",),
    f"{ENGINE}/runtime": ("spark",),
    f"{ENGINE}/ui": ("ui",),
    f"{ENGINE}/warehouse": ("kafka", "adapter"),
    "tablestore_demo": ("demo",),
    "docs": ("docs",),
}


def changed_files(base: str) -> list[str]:
    """Paths that differ from where the branch left `base`, committed or not."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout.splitlines()

    [start] = git("merge-base", "HEAD", base)
    return [*git("diff", "--name-only", start), *git("ls-files", "--others", "--exclude-standard")]


def pick_suites(paths: Iterable[str]) -> set[str]:
    """Folders of integration_tests for these paths."""
    return {
        f"integration_tests/{suite}"
        for path in paths
        for part, suites in REAL_PARTS.items()
        if path == part or path.startswith(f"{part}/")
        for suite in suites
    }


def pick_tests(paths: Collection[str]) -> set[str]:
    """Test files that were changed or import what was, those of `tests` through other modules too."""
    changed = {_module(path) for path in paths}
    graph = grimp.build_graph(ENGINE, cache_dir=None)
    for door in [one for one in graph.modules if one.startswith(DOORS) and one not in changed]:
        graph.remove_module(door)
    above = {one for module in changed & graph.modules for one in graph.find_downstream_modules(module)}
    return _using(changed | above, "tests") | _using(changed, "integration_tests")


def _using(modules: set[str], folder: str) -> set[str]:
    """Test files that import one of these, also by a helper of the folder."""
    files = {_module(str(one.relative_to(ROOT))): one for one in (ROOT / folder).rglob("*.py")}
    imports = {name: _imports(file) for name, file in files.items()}
    found = modules & files.keys()
    while more := {name for name, used in imports.items() if used & (modules | found)} - found:
        found |= more
    return {str(files[name].relative_to(ROOT)) for name in found if files[name].name.startswith("test_")}


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def _imports(file: Path) -> set[str]:
    """Names of modules, and of what is taken from them, since that may be a module too."""
    found: set[str] = set()
    for node in walk_statements(parsed(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return found


def main() -> int:
    """pytest's exit status; 0 when nothing was changed that a test knows of."""
    paths = changed_files(os.environ.get("BASE", "main"))
    suites = pick_suites(paths)
    single = sorted(one for one in pick_tests(paths) if not one.startswith(tuple(f"{s}/" for s in suites)))
    own = [one for one in single if not one.startswith(("integration_tests/", "tests/house/"))]
    parts = [one for one in single if one.startswith("integration_tests/")]
    runs = [["tests/house", *own], *([suite] for suite in sorted(suites)), *([part] for part in parts)]
    print(f"{len(paths)} files changed: {' '.join(one for run in runs for one in run)}", flush=True)
    command = [sys.executable, "-m", "pytest", "-m", "not nightly"]
    # a process each: that of tests/ refuses a JVM (tests/conftest.py), and each suite has its own
    return max(subprocess.run([*command, *run], cwd=ROOT, check=False).returncode for run in runs)


if __name__ == "__main__":
    sys.exit(main())
