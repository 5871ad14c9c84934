"""Projects and packages of others, run as they are."""
