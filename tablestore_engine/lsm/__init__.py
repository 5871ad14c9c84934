"""Merge versions of a row into one row; choose compactions. Pure over Arrow, numpy and polars, without files."""
