"""The TransactionCoordinator: pure rules for transactional ids and the transactions of their producers.

Mirrors org.apache.kafka.coordinator.transaction. Start reading at `coordinator`.
"""
