"""`partita groups` and its subcommands."""
