"""Incremental strategies that a macro of the project or of a package writes: get_incremental_NAME_sql.

CHANGE     an incremental strategy that is a macro
WHY        the macro's statements change the table themselves. So `unique_key` is the macro's affair, not a key of the
           table, and rows cannot wait for tests: `publish` is always. A model that says otherwise is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tablestore_engine.api import Unsupported
from tablestore_engine.spi import Staged


def with_own_write(model: Mapping[str, Any]) -> dict[str, Any]:
    """The model with the config that creates its table. Raises Unsupported TS1874 if the model is gated."""
    name, config = str(model["name"]), dict(model["config"])
    strategy, publish = config.get("incremental_strategy"), config.get("publish") or "auto"
    if publish not in ("auto", "always"):
        raise Unsupported(
            "TS1874",
            f"model {name} cannot be staged",
            why=f"incremental_strategy {strategy!r} is a macro that changes the table itself; publish is {publish!r}",
            fix="remove publish, or use a strategy of this adapter",
        )
    known = "merge" if config.get("primary_key") else "append"
    changed = {"incremental_strategy": known, "unique_key": None, "publish": "always"}
    return {**model, "config": {**config, **changed}}


def builds_on_staged(staged: Staged) -> Unsupported:
    """TS1898: the model reads rows that wait for their tests."""
    parents = ", ".join(sorted({read.table for read in staged.parents}))
    return Unsupported(
        "TS1898",
        f"model {staged.table} cannot be written yet",
        why=f"it reads rows of {parents} that are not published, and its strategy changes the table itself",
        fix=f"publish {parents} first (dbt build of it alone), then run the model again",
    )


def is_tested(node: str, selected: Collection[str], nodes: Mapping[str, Any]) -> bool:
    """Whether this command runs a data test of the model."""
    return any(
        nodes[one]["resource_type"] == "test" and node in nodes[one]["depends_on"]["nodes"]
        for one in selected
        if one in nodes
    )
