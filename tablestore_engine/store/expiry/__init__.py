"""Old snapshots, tags and partitions go: what is held, what is named, what is deleted."""
