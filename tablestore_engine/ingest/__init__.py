"""Change messages of other systems → keyed tables, exactly once."""
