"""What one shard knows, and what the rules share while they work on one input."""
