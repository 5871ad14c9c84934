"""A key lives in one partition, so the key has to hold the columns that say which one.

INVARIANT  pure; asked before anything is written, and every way out that the error names is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tablestore_engine.api import FixRequest


def check_key_holds_partition(
    name: str, primary_key: Sequence[str], partition_by: Sequence[str], values: Mapping[str, object]
) -> None:
    """`values`: the model's config, for the word by which it names its key. Raises FixRequest TS1885."""
    key = {column.lower() for column in primary_key}
    outside = [column for column in partition_by if column.lower() not in key]
    if not primary_key or not outside:
        return
    word = "primary_key" if values.get("primary_key") else "unique_key"
    whole = [*primary_key, *outside]
    raise FixRequest(
        "TS1885",
        f"model {name}: {word} {list(primary_key)} lacks the partition column {outside[0]!r}",
        why=f"rows are looked up by key inside one partition: a key whose {outside[0]} changes would stay in both",
        fix=f"write {word}={whole} (one row per key and {outside[0]}), or drop partition_by (one row per key), or "
        "set incremental_strategy='delete+insert' with unique_key alone: it replaces the rows of a key in every "
        "partition of a table without primary key",
    )
