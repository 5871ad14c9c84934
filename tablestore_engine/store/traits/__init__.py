"""What the options of a table mean, parsed once."""
