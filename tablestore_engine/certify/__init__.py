"""Other programs' readers of the same table: whether they show the rows that this engine shows."""
