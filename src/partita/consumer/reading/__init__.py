"""Where to read and what was fetched: positions, fetches and their answers, as rules without IO."""
