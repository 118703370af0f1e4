"""A real ZooKeeper, started from the jars that pyspark brings, and a client with the Java client's behaviour."""
