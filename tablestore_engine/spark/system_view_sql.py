"""SQL text of a system view: its rows as one JSON literal, so that Spark reads it quickly and on any cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tablestore_engine.sql.scanner import quote_string


def system_view_sql(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]) -> str:
    """`columns`: (name, Spark type). A query that reads it depends on the moment, and says so: what is computed from
    changes alone must not take it for a constant.
    """
    names = [name for name, _ in columns]
    texts = json.dumps([dict(zip(names, row, strict=True)) for row in rows], ensure_ascii=False)
    shape = f"array<struct<{', '.join(f'`{name}`: {kind}' for name, kind in columns)}>>"
    made = f"select inline(from_json({quote_string(texts)}, {quote_string(shape)}))"
    return f"select * from ({made}) where current_timestamp() is not null"
