"""The real broker in virtual time: an event loop, a disk and a process that belong to a simulated world."""
