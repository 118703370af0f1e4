"""The two faces of the consumer and what runs the core for them: the loop thread, waiting, delivery, closing."""
