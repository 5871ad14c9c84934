"""Metadata files of a table: schemas, snapshots, manifests, tags, and what follows from their line."""
