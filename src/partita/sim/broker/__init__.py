"""The simulated broker: the real coordinator over simulated storage, and topics of numbered records."""
