"""Behind commits and when somebody asks: what expires, what nothing names, what a compaction did."""
