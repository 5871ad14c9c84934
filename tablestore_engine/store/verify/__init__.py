"""Checks every on-disk invariant of a table: each file once, each snapshot by its difference to the one before."""
