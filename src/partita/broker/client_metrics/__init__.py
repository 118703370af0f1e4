"""Metrics that clients push (KIP-714): subscriptions to them, the clients that push, the numbers that came."""
