"""How much clients may use: quotas, kept in the catalogue, and the waits they lead to."""
