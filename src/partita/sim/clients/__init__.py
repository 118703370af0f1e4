"""The simulated clients: the real consumer core under an application."""
