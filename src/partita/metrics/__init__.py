"""Numbers about clients and broker by Kafka's names: sensors that record, and the table of their metrics.

Time is passed in, in milliseconds of a monotonic clock. (Kafka: org.apache.kafka.common.metrics.)
"""
