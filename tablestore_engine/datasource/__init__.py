"""Spark's format("tablestore"): streams and batches of one table, in the Python workers that Spark starts for it."""
