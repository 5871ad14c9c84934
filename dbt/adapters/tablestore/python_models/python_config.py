"""What the config of a Python model says besides that of its table, and what needs a query in SQL.

INVARIANT  pure; everything that is refused is refused before the model's code runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.tablestore.config.changed_keys_config import STRATEGY
from dbt.adapters.tablestore.model_graph import nested
from tablestore_engine.api import FixRequest, Unsupported
from tablestore_engine.spi import FrameKind

_MATERIALIZED = ("table", "incremental", "tablestore")
_NEEDS_SQL: Mapping[str, str] = {
    "microbatch": "it filters each input in the model's SQL; in a Python model dbt does not",
}


@dataclass(frozen=True)
class PythonConfig:
    """`dataframe`: what dbt.ref() and dbt.source() give; `packages`: as in requirements files."""

    dataframe: FrameKind
    packages: tuple[str, ...]


def read_python_config(model: Mapping[str, Any]) -> PythonConfig:
    """`model`: dbt's node. Raises FixRequest TS1891, Unsupported TS1893."""
    name, config = str(model["name"]), model["config"]
    _refuse_unsupported(name, model, config)
    return PythonConfig(_read_dataframe(name, config), _read_packages(name, config))


def _read_dataframe(name: str, config: Mapping[str, Any]) -> FrameKind:
    value = _find(config, "dataframe") or FrameKind.SPARK
    known = [kind.value for kind in FrameKind]
    if value not in known:
        raise _wrong(name, "dataframe", value, f"one of {', '.join(known)}")
    return FrameKind(value)


def _find(config: Mapping[str, Any], key: str) -> Any:  # noqa: ANN401 - of the user's config
    """At the top level, or below meta.tablestore."""
    return config.get(key) or nested(config).get(key)


def _read_packages(name: str, config: Mapping[str, Any]) -> tuple[str, ...]:
    value = config.get("packages") or ()
    packages = [value] if isinstance(value, str) else value
    if not isinstance(packages, Sequence) or not all(isinstance(one, str) for one in packages):
        raise _wrong(name, "packages", value, "a list of package names, with or without a version")
    return tuple(packages)


def _wrong(name: str, key: str, value: object, expected: str) -> FixRequest:
    return FixRequest(
        "TS1891",
        f"Python model {name}: config {key!r} has a wrong value",
        why=f"expected {expected}, got {value!r}",
        fix=f"change {key!r} in dbt.config() or in the model's YAML",
    )


def _refuse_unsupported(name: str, model: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    materialized = str(config.get("materialized"))
    strategy = str(config.get("incremental_strategy"))
    inlined = [str(one["id"]).rsplit(".", maxsplit=1)[-1] for one in model.get("extra_ctes") or ()]
    if materialized not in _MATERIALIZED:
        raise _unsupported(
            name,
            f"materialized={materialized!r}",
            "it needs a query in SQL",
            f"use one of {', '.join(_MATERIALIZED)}, or write the model in SQL",
        )
    if materialized != "table" and strategy in _NEEDS_SQL:
        raise _unsupported(
            name,
            f"incremental_strategy={strategy!r}",
            _NEEDS_SQL[strategy],
            "use append, merge, delete+insert, insert_overwrite or changed_keys, or write the model in SQL",
        )
    if materialized != "table" and strategy == STRATEGY and not _find(config, "affected_by"):
        raise _unsupported(
            name,
            f"incremental_strategy={strategy!r} without affected_by",
            "nothing says which keys a changed row of an input affects",
            "name inputs, and the expressions of the key: affected_by={'orders': 'customer'}",
        )
    if inlined:
        raise _unsupported(
            name,
            f"dbt.ref() of the ephemeral model {inlined[0]}",
            "dbt inserts ephemeral models as text into SQL",
            f"set materialized='view' or 'table' on {inlined[0]}",
        )


def _unsupported(name: str, what: str, why: str, fix: str) -> Unsupported:
    return Unsupported("TS1893", f"Python model {name}: {what} is not supported", why=why, fix=fix)
