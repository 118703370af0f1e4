"""The classic group protocol: join, sync, heartbeat, leave, and all state transitions."""
