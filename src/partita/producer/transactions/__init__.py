"""Transactions of a producer: states, requests to coordinators, meaning of answers. Pure."""
