"""The TransactionCoordinator: pure rules for transactional ids and the transactions of their producers.

Mirrors org.apache.kafka.coordinator.transaction of Apache Kafka 4.3.1. Start reading at `coordinator`.
"""
