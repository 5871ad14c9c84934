"""Readers that follow a table: where they begin, what they get, how far they are."""
