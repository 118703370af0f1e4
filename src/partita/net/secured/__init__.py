"""TLS and logins of the clients: contexts, SASL exchanges, tokens, Kerberos."""
