"""Files that nothing names."""
