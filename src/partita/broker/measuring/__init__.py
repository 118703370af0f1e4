"""Kafka's metrics, health and the log of events, read from the counters and from the state."""
