"""The file-system port and its implementations."""
