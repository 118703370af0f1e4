"""Checks around every handler: logins, rights and quotas."""
