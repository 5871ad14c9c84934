"""Runs without an end: `tablestore run-stream`."""
