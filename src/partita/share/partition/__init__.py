"""One share partition: which records are available, acquired, acknowledged or archived, and who holds them."""
