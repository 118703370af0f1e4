"""Work beside the event loop: worker threads, a sliced thread, and a queue for very large requests."""
