"""The command `tablestore`: tables for people, without a JVM where none is needed."""
