"""The analyzed plan of a query as frozen values, and what is proven from it. No Spark, no I/O."""
