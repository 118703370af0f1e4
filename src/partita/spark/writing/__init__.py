"""Writes Spark rows to topics."""
