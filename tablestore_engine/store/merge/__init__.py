"""Rows and stored files of one bucket become new files: looked up, merged, replaced, compacted."""
