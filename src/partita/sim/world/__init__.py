"""The simulated world: time, chance, the network and the history of what happened."""
