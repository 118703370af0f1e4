"""Calls for logins, rights and limits: ACLs, SCRAM users, delegation tokens, quotas."""
