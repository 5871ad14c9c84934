"""Branches of a table that users make: create, write to, fast-forward, delete."""
