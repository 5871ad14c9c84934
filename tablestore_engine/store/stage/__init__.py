"""Snapshots that wait on a branch until they are tested."""
