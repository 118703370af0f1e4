"""Which offsets a batch reads, as rules without IO and without Spark."""
