"""Iceberg metadata beside the snapshots of a table: made after commits, expiry, tags and rollbacks."""
