"""The state of one shard, and the context of one input."""
