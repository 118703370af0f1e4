"""Planning of a batch's offsets, as rules without IO and without Spark."""
