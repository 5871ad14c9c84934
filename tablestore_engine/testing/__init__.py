"""The shipped test kit: a table as a dict, and file systems that fail on purpose."""
