"""Existing topics, and the checks before one is created."""
