"""The control verbs of tests, and the HTTP endpoint for them."""
