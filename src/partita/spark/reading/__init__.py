"""Reads planned ranges into Arrow batches inside Spark workers."""
