"""One table as files: planning reads, writing buckets, committing, staging, verifying."""
