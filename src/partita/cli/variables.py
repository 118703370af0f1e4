"""Names of environment variables that several commands read."""

TOKEN_VARIABLE = "PARTITA_ADMIN_TOKEN"
"""The variable with the control endpoint's token."""
