"""Committed offsets: commits, transactions, fetches, deletion and expiry."""
