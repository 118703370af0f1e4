"""Share groups (KIP-932) in the coordinator: members, targets, and the state of their share partitions."""
