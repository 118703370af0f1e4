"""Partitions of topics and offsets in them, as the calls of every client name them."""
