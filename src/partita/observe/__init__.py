"""Watching a cluster from outside: what was seen of its nodes, topics, groups and transactions, and their history."""
