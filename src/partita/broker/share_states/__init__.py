"""The share coordinator of this process: one shard per led partition of `__share_group_state`."""
