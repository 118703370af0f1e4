"""Commands that read and write records: `consume`, `produce`, `mirror`, `perf`."""
