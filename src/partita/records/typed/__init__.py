"""Values of records as typed Arrow columns: decoded as Spark's `from_json` and `from_avro` do."""
