"""The service side of `partita broker`: its configuration file, its log, copies of its data directory."""
