"""Tests decide over staged snapshots: the one rule, and publishing what it lets go."""
