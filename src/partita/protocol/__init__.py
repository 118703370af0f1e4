"""Bytes to typed messages and back. Pure: knows no socket, file, clock or broker."""
