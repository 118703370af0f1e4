"""Commands that play stories."""
