"""What `partita broker` needs as a service: its configuration file, its log, copies of its data directory."""
