"""Who may ask for what: the ACLs of a cluster, and what each API needs."""
