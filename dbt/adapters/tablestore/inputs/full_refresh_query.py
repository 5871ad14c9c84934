"""The generic test equals_full_refresh: a model's rows against its query over the very states that it was made from.

Where      the SQL is what dbt has compiled in this command, or in an earlier one (target/compiled): a test cannot
           compile what another node refs. Which one the rows were made by, the digest among the positions says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dbt.adapters.tablestore.inputs.changed_keys_inputs import text_digest
from dbt.adapters.tablestore.plan.select_sql import quote
from tablestore_engine.api import FixRequest


def find_query(manifest: Any, target: Path, table: str, digest: str | None) -> tuple[Any, str]:  # noqa: ANN401 - dbt's
    """(the model, dbt's node; its SQL or Python code); `target`: dbt's target folder. Raises FixRequest TS1840."""
    nodes = getattr(manifest, "nodes", None) or {}
    named = (one for one in nodes.values() if f"{one.schema}.{one.alias}".lower() == table.lower())
    node = next((one for one in named if str(one.resource_type) == "model"), None)
    if node is None or digest is None:
        raise _refused(
            table,
            "no model with incremental_strategy='changed_keys' has made its rows",
            "test such a model; other tables are their query's rows at each full refresh",
        )
    header = str(node.config.get("sql_header") or "")
    for text in _texts(node, target):
        if text_digest(text_of(header, text)) == digest.partition("-")[0]:
            return node, text
    raise _refused(
        table,
        "its rows were made by other SQL than the model's, or dbt has not compiled it here",
        "run the model (dbt build), which compares all rows when its SQL has changed",
    )


def text_of(header: str, sql: str) -> str:
    """What a model's rows are made by, as the macro tablestore_text_of_model gives it."""
    return f"{header}\n{sql}" if header else sql


def _texts(node: Any, target: Path) -> Iterator[str]:  # noqa: ANN401 - a node of dbt's
    if getattr(node, "compiled_code", None):
        yield str(node.compiled_code)
    path = target / "compiled" / str(node.package_name) / str(node.original_file_path)
    if path.is_file():
        yield path.read_text()


def difference(query: str, table: str, columns: Sequence[str]) -> str:
    """One row for each that is missing or too many."""
    items = ", ".join(map(quote, columns))
    expected, found = f"select {items} from (\n{query}\n)", f"select {items} from {table}"
    return (
        f"select 'missing' as problem, * from (\n{expected}\nexcept all\n{found}\n)\nunion all\n"
        f"select 'not in the query' as problem, * from (\n{found}\nexcept all\n{expected}\n)"
    )


def made_otherwise(table: str) -> FixRequest:
    """TS1840: its rows are those of the same text over other views, columns or settings."""
    return _refused(
        table,
        "a view, function, variable, past state, column of an input or setting that its query uses changed since its "
        "rows were made",
        "run the model (dbt build), which compares all rows then",
    )


def _refused(table: str, why: str, fix: str) -> FixRequest:
    return FixRequest("TS1840", f"{table} cannot be compared with its full refresh", why=why, fix=fix)
