"""Models that wait for their data tests: what is staged, what tests say, what goes out when."""
