"""Orphan files: files in a table's folder that nothing references."""
