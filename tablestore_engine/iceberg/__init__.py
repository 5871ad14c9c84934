"""Iceberg's metadata of a table: which files there are, and their bytes. Opens nothing."""
