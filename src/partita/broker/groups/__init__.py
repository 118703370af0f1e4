"""Runs the coordinator shards: load, append, release the replies."""
