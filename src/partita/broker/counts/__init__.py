"""Counters of requests, times and errors, updated as requests go by."""
