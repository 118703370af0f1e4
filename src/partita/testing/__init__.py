"""Support for test suites: the pytest plugin, `partita.testing.plugin`."""
