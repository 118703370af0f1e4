"""Calls about who may log in and do what: ACLs, SCRAM users, delegation tokens."""
