"""SQL statements: from a parsed statement to what happens to tables, views and rows."""
