"""What tests replace: clock, ids, sleep, randomness, crash points; Java, and processes of servers that we start."""
