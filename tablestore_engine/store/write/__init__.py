"""A write and a compaction from request to plan, on whatever base there is."""
