"""A consumer in a share group: membership, sessions at the leaders, records held and acknowledged; pure."""
