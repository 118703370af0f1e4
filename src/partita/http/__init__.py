"""HTTP/1.1 for monitoring: the broker's control endpoint, and the metrics of clients. Loaded where it is used."""
