"""Which topics exist, and the checks before one is made."""
