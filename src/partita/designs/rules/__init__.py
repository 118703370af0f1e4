"""What the consumers and coordinators of the old designs decide, without sockets, threads or clocks."""
