"""Which files and rows of a snapshot a read gets."""
