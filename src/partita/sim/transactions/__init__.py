"""Transactions under faults: producers, copiers and readers of a simulated cluster, and what must hold of them."""
