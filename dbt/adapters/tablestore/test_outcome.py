"""Read a data test's outcome from the context that dbt hands to post_model_hook.

Names      read_outcome()   context -> (test id, verdict, schemas it reads), or None for anything but a data test
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.tablestore.gate import Verdict, combine_verdict


def read_outcome(context: Mapping[str, Any]) -> tuple[str, Verdict] | None:
    """dbt gives models' config objects here too, and unit tests' contexts: both have no gating outcome."""
    if not isinstance(context, Mapping) or "load_result" not in context:
        return None
    model = context["model"]
    if model.get("resource_type") != "test":
        return None
    config = model.get("config") or {}
    severity = str(config.get("severity") or "error")
    flags = context.get("flags")
    warn_is_error = bool(getattr(flags, "WARN_ERROR", False))
    return model["unique_id"], combine_verdict(_row(context), severity, warn_is_error=warn_is_error)


def _row(context: Mapping[str, Any]) -> tuple[int, bool, bool] | None:
    """(failures, should_warn, should_error); None when the test raised before it had a result."""
    result = context["load_result"]("main")
    if result is None or len(result["table"].rows) != 1:
        return None
    failures, should_warn, should_error = result["table"].rows[0]
    return int(failures or 0), _truth(should_warn), _truth(should_error)


def _truth(value: object) -> bool:
    """Booleans arrive as such, or as text from some fetches."""
    return value.strip().lower() == "true" if isinstance(value, str) else bool(value)
