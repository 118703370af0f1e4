"""The broker's storage, on disk or in memory, and its upkeep."""
