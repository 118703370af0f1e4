"""The share coordinator: pure rules for the stored state of share partitions.

Mirrors org.apache.kafka.coordinator.share of Apache Kafka 4.4.0. Start reading at `coordinator`.
"""
