"""Generated messages, one module per API. See `partita.protocol.generate`; import the modules you need."""
