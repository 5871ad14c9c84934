"""Random statements with right and wrong names, judged by Spark and DuckDB."""
