"""Authorization: ACLs, and the decisions made from them."""
