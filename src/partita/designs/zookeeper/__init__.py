"""A real ZooKeeper, started from its jars, and a client with the Java client's behaviour."""
