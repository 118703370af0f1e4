"""Commands that show and change a cluster: `cluster`, `topics`, `partitions`, `config`."""
