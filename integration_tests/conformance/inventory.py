"""The classes of dbt-tests-adapter: which there are, and which are expected of an adapter like this one.

INVARIANT  a class that a new version of dbt-tests-adapter brings counts as expected until somebody decides otherwise.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path

import dbt.tests.adapter as adapter_tests

_PACKAGE = "dbt.tests.adapter"
_ROOT = Path(next(iter(adapter_tests.__path__)))

_GRANTS = "a warehouse of files has no grants; a model that asks for some gets a warning"
_JAVASCRIPT = "Spark has no JavaScript functions"
_AGGREGATE = "Spark has no aggregate functions in SQL"
_PYTHON_FUNCTION = "Spark stores no Python functions"
_MATERIALIZED_VIEW = "a materialized view is a table here; the classes expect a kind of relation of its own"

_AREAS: Mapping[str, str] = {
    "catalog_integrations": "there is no catalog server, so no catalogs.yml",
    "column_types": "compares Postgres' names of types",
    "grants": _GRANTS,
    "materialized_view": _MATERIALIZED_VIEW,
}
_CLASSES: Mapping[str, str] = {
    "aliases.test_aliases.BaseSameAliasDifferentDatabases": "Spark has no databases above schemas",
    "basic.test_get_catalog_for_single_relation.BaseGetCatalogForSingleRelation": "optional (a capability): its "
    "expectations are materialized views and Postgres' owner; single relations come from get_catalog_by_relations",
    "constraints.test_constraints.BaseIncrementalForeignKeyConstraint": "optional (foreign keys are documentation)",
    "dbt_clone.test_dbt_clone.BaseCloneNotPossible": "for adapters that make views of clones",
    "dbt_debug.test_dbt_debug.BaseDebugInvalidProjectPostgres": "Postgres' profile and output",
    "dbt_debug.test_dbt_debug.BaseDebugPostgres": "Postgres' profile and output",
    "dbt_show.test_dbt_show.BaseShowDoesNotHandleDoubleLimit": "optional (the message is the database's)",
    "empty.test_empty.BaseTestEmptySeedFlag": "optional (dbt seed --empty exists from dbt-core 1.12)",
    **{
        f"functions.test_js_udfs.{name}": _JAVASCRIPT
        for name in (
            "BasicJSAggregateUDF",
            "BasicJSUDF",
            "JSAggregateUDFVolatilityIgnored",
            "JSUDFDefaultArgSupport",
            "JSUDFDeterministicVolatility",
            "JSUDFMultiLineBody",
            "JSUDFNonDeterministicVolatility",
            "JSUDFStableVolatilityWarns",
        )
    },
    "functions.test_udafs.BasicSQLUDAF": _AGGREGATE,
    "functions.test_udafs.UDAFBase": _AGGREGATE,
    "functions.test_udafs.BasicPythonUDAF": _PYTHON_FUNCTION,
    "functions.test_udafs.PythonUDAFDefaultArgSupport": _PYTHON_FUNCTION,
    "functions.test_udfs.PythonUDFDefaultArgSupport": _PYTHON_FUNCTION,
    "functions.test_udfs.PythonUDFNotSupported": "the error names the feature (TS1884), not a macro of dbt",
    "functions.test_udfs.PythonUDFSupported": _PYTHON_FUNCTION,
    "functions.test_udfs.PythonUDFVolatilitySupport": _PYTHON_FUNCTION,
    "functions.test_udfs.PythonUDFWithPackagesSupported": _PYTHON_FUNCTION,
    "utils.test_current_timestamp.BaseCurrentTimestampAware": "one of Aware and Naive applies",
    "utils.test_escape_single_quotes.BaseEscapeSingleQuotesQuote": "Spark escapes with a backslash",
}


def reason_not_expected(name: str) -> str | None:
    """Why a class is not expected; None for those that are."""
    return _CLASSES.get(name) or _AREAS.get(name.split(".", maxsplit=1)[0])


def original_name(original: type) -> str:
    """`basic.test_base.BaseSimpleMaterializations`."""
    return f"{original.__module__}.{original.__qualname__}".removeprefix(f"{_PACKAGE}.")


def list_tests(cls: type) -> tuple[str, ...]:
    """The test functions of a class, its bases' included."""
    members = inspect.getmembers(cls, inspect.isfunction)
    return tuple(sorted(name for name, _ in members if name.startswith("test")))


def is_original(cls: type) -> bool:
    """A class of dbt-tests-adapter that an adapter subclasses, with tests."""
    inside = cls.__module__.startswith(f"{_PACKAGE}.")
    return inside and not cls.__name__.startswith("Test") and bool(list_tests(cls))


def find_originals() -> dict[str, type]:
    """Every class of the installed dbt-tests-adapter, by name; its `Test…` classes only repeat them for Postgres."""
    found: dict[str, type] = {}
    for path in sorted(_ROOT.rglob("*.py")):
        parts = path.relative_to(_ROOT).with_suffix("").parts
        if parts[-1] == "__init__":
            continue
        module = importlib.import_module(".".join((_PACKAGE, *parts)))
        for cls in vars(module).values():
            if inspect.isclass(cls) and cls.__module__ == module.__name__ and is_original(cls):
                found[original_name(cls)] = cls
    return found
