"""The broker's numbers: what is counted as requests go by, and Kafka's metrics read from that and from the state."""
