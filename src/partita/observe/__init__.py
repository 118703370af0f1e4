"""Watching a cluster from outside: observations of its nodes, topics, groups and transactions, and their history."""
