"""Positions and fetched data: positions, fetches and their answers, as rules without IO."""
