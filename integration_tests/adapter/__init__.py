"""The adapter's own promises, with dbt, Spark and files as a user has them."""
