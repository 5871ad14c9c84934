"""Config keys that decide which row of a key a table keeps: what each strategy does with them.

INVARIANT  every such key has a decision for every strategy; one that contradicts it is refused, never ignored.
WHY        changed_keys and the changes of a stream say by themselves which row is right: the one that the query gives
           now. A key by which another row wins would keep a wrong one without an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

RETRACTIONS = "retractions"  # a streaming model whose result has _row_kind and _snapshot_id


class Use(StrEnum):
    """`APPLIED`: the strategy follows it; `UNUSED`: it has no meaning there, as in dbt's other adapters."""

    APPLIED = "applied"
    UNUSED = "unused"
    REFUSED = "refused"


_A, _U, _R = Use.APPLIED, Use.UNUSED, Use.REFUSED
_COLUMNS = ("append", "merge", "delete+insert", "insert_overwrite", "microbatch", "changed_keys", RETRACTIONS)
_ROWS = {
    "sequence_field":         (_A, _A, _A, _A, _A, _R, _R),
    "merge_engine":           (_A, _A, _A, _A, _A, _R, _R),
    "ignore_delete":          (_A, _A, _A, _A, _A, _R, _R),
    "ignore_update_before":   (_A, _A, _A, _A, _A, _R, _R),
    "rowkind_field":          (_A, _A, _A, _A, _A, _R, _R),
    "duplicates":             (_A, _A, _A, _A, _A, _R, _A),
    "merge_update_columns":   (_R, _A, _R, _R, _R, _R, _R),
    "merge_exclude_columns":  (_R, _A, _R, _R, _R, _R, _R),
    "delete_when":            (_R, _A, _R, _R, _R, _R, _R),
    "incremental_predicates": (_U, _A, _A, _U, _U, _R, _R),
}  # fmt: skip
# config key -> strategy -> what it does with it
ROW_CHOICES: Mapping[str, Mapping[str, Use]] = {
    key: dict(zip(_COLUMNS, uses, strict=True)) for key, uses in _ROWS.items()
}
# options of a table that already exists: key -> the value by which rows win as changed_keys needs it
NEUTRAL_OPTIONS: Mapping[str, str | None] = {
    "sequence.field": None,
    "merge-engine": "deduplicate",
    "ignore-delete": "false",
    "ignore-update-before": "false",
    "rowkind.field": None,
    "tablestore.duplicates": "refuse",
}


def find_unneutral(options: Mapping[str, str]) -> str | None:
    """The first option by which a table keeps another row than the one that was written last."""
    return next(
        (key for key, neutral in NEUTRAL_OPTIONS.items() if options.get(key, neutral) != neutral), None
    )
