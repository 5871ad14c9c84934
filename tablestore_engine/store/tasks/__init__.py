"""Work on a bucket as a value: planned, sized, performed."""
