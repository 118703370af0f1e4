"""What fetches share: sessions and waiting for data."""
