"""What proves who a peer is: secrets, login lines, SASL exchanges, names and rights, as rules without IO."""
