"""Common parts of fetches: sessions and waiting for data."""
