"""A data pipeline as a TOML file: source, decoding, quality rules, SQL, sinks. `partita pipeline` plans and runs it."""
