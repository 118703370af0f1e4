"""Three designs of a rebalance that Kafka has had, runnable beside each other on the same workload.

Design 1: every consumer watches ZooKeeper. Design 2: a coordinator watches it for them. Design 3: the coordinator is
part of the broker, as in Partita.
"""
