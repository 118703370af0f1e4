"""The members of a group in each design, as they run in worker processes. They report their events as JSON lines."""
