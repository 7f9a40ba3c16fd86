"""Ways to count the MACs of a running program; each says what it did not count."""
