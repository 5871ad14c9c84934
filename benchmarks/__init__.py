"""Measurements: ours, the physical limit and a peer in one run, with row counts and checksums verified."""
