"""The deterministic simulator: real rules of broker and consumer in a world drawn from a seed.

Start reading at `partita.sim.run`.
"""
