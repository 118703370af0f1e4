"""What the broker keeps, on disk or in memory, and its upkeep."""
