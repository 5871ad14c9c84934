"""Versions of a row become one row; which files to fold. Pure over Arrow, numpy and polars: no files here."""
