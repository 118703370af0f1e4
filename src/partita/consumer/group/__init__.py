"""The member: joining, rebalancing, heartbeats and commits, as rules without IO."""
