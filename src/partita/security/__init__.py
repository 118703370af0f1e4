"""Authentication and authorization as rules without IO: secrets, login lines, SASL exchanges, names and rights."""
