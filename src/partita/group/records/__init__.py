"""Records of `__consumer_offsets`: keys, values, and the state that replaying them gives."""
