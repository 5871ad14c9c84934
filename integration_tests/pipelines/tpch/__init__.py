"""TPC-H-shaped: the tables, a generator of their rows, refresh functions and updates, the 22 queries as models."""
