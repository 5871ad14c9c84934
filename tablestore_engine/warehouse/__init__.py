"""Everything that is done to the tables of one warehouse: statements, writes, publishing, staging, listings."""
