"""Who may do what: ACLs, and the decisions made from them."""
