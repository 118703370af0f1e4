"""Share groups at the leaders of partitions: sessions, share partitions in memory, fetches that wait."""
