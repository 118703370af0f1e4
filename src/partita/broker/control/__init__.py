"""What a test may cause, and the HTTP endpoint that asks for it."""
