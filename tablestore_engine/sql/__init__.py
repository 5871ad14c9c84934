"""SQL text understood without Spark: tokens, statements, versions in names and clauses."""
