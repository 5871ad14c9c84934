"""How many buckets a new table gets with `bucket` = `auto`: by the size of the rows of its first write.

CHANGE     the number of buckets of `bucket` = `auto`
INVARIANT  the schema stores the number: other engines know no word there, and buckets of a table never change unseen.
WHY        a bucket of 256 MB in memory is one file of some ten to a hundred MB, which one task merges in seconds.
"""

from __future__ import annotations

from dataclasses import replace

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.warehouse.write.incoming import Incoming
from tablestore_engine.warehouse.write.write_spec import TableSpec

AUTO = "auto"
BUCKET_BYTES = 256 << 20
BUCKETS_MAX = 64


def is_auto(spec: TableSpec) -> bool:
    return spec.options.get("bucket", "").strip().lower() == AUTO


def with_bucket_number(spec: TableSpec, current: TableSchema | None, incoming: Incoming) -> TableSpec:
    """The spec with a number where it says `auto`; a table that exists keeps its own."""
    if not is_auto(spec):
        return spec
    if current is not None:
        return replace(spec, options={key: text for key, text in spec.options.items() if key != "bucket"})
    number = -1
    if spec.primary_key or spec.options.get("bucket-key"):
        number = pick_bucket_number(incoming.size_bytes())
        if number > 1 and spec.partition_by:
            number = pick_bucket_number(
                incoming.size_bytes() // max(1, incoming.count_groups(spec.partition_by))
            )
    return replace(spec, options={**spec.options, "bucket": str(number)})


def pick_bucket_number(partition_bytes: int) -> int:
    """One bucket for each BUCKET_BYTES of a partition, at least 1 and at most BUCKETS_MAX."""
    return min(max(1, -(-partition_bytes // BUCKET_BYTES)), BUCKETS_MAX)
