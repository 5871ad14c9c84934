"""A plan becomes the next snapshot, or learns that somebody was faster."""
