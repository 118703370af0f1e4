"""KIP-848 groups: the coordinator assigns, and members reconcile one by one."""
