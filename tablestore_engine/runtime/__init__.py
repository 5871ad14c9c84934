"""What tests replace: clock, ids, sleep, randomness, crash points; and the Java that the JVM parts use."""
