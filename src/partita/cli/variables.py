"""Names of environment variables that several commands read."""

TOKEN_VARIABLE = "PARTITA_ADMIN_TOKEN"
"""What the control endpoint asks for."""
