"""Blocking access to brokers for code that Spark calls."""
