"""The two faces of the consumer and the shell around the core: the loop thread, waiting, delivery, closing."""
