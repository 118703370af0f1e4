"""Calls for logins and rights: ACLs, SCRAM users, delegation tokens."""
