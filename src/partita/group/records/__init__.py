"""What `__consumer_offsets` holds: keys and values of its records, and the state a replay of them gives."""
