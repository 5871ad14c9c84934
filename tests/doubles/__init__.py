"""Test doubles: a table as a dict, and file systems that count, simulate a store or fail on purpose."""
