"""Pictures of tables: a page on 127.0.0.1 and the same page as one file. Read-only, without a JVM."""
