"""The members of a group in each design, as they run in worker processes. What they do is told as JSON lines."""
