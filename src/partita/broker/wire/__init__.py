"""Sockets: listen, accept, cut frames, write answers in request order."""
