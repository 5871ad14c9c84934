"""Doing what was planned: a model or seed is written, replaced, or written again by `dbt retry`."""
