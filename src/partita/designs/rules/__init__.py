"""The rules of the old designs' consumers and coordinators, without sockets, threads or clocks."""
