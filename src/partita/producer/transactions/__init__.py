"""Transactions of a producer: states, requests to coordinators, what an answer means. Pure."""
