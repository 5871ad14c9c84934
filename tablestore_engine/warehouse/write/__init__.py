"""One write from what the caller has to its snapshot: what is asked for, rows, schema, commit."""
