"""The classic group protocol: joining, syncing, heartbeats, leaving, and every move between states."""
